"""Runs rknn-toolkit2 once: load, build, export and, where feeds are given, its simulator in the same session.

    CONVERTER_PYTHON -s -u engine/worker.py request.json

The only module that imports rknn. It runs in the converter environment (Python 3.10 to 3.12, numpy 1.26), in a private
working directory that holds the request and receives everything it writes, and imports nothing of this project but
`torch_standin` and `steady_memory`, by path. What happened is in `result.json`, whose `step` says how far it came even
after a crash. Exit codes:

    0  everything that was asked for is there
    3  a step returned a code other than 0, or raised
    4  the converter environment is broken: rknn cannot be imported
"""

from __future__ import annotations

import sys

# The folder of this file comes first on the path, where its modules would hide others of the same name (`build`, ...).
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import ctypes
import errno
import importlib.metadata
import importlib.util
import json
import os
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

EXIT_DONE, EXIT_STEP_FAILED, EXIT_ENVIRONMENT = 0, 3, 4

RESULT_FILE = "result.json"
DATASET_FILE, CALIBRATION_FOLDER = "dataset.txt", "calibration"

LARGE_BYTES, LARGE_FILE, WEIGHTS_FILE = 1 << 30, "large.onnx", "weights.data"
"""From so many bytes of an ONNX on, the toolkit is given a copy whose weights are in a file of their own.

It needs 10.6 GB to load 1.35 GB of weights from inside a graph, and 3.9 GB from beside it. The engine is the same but
for addresses in it of the compiler's heap. 267 MB take 1.5 GB and 0.6, and both times 1.7 to build, so that a
smaller graph has nothing to gain (measured, 2.3.2)."""

WRONG_RULES = ("remove_parallel_gather", "fuse_mul_into_matmul")
"""Fuse rules of the toolkit that make other numbers of a graph without a word, and are switched off in every build.

`remove_parallel_gather` makes one Gather of all that read the same indices along the same axis, whatever tables they
read: of two embeddings of one id, both are the first (0.8 dB; without the rule 72 dB; measured, 2.3.2, rk3588).

`fuse_mul_into_matmul` multiplies the constants C of (x[N, D] @ W[D, K]) * C into W, also where C[N, 1] or C[N, K] are
others for each row of x: it takes their rows for those of W. Where N is D it says nothing (-3 dB; without the rule
67 dB), otherwise it crashes, or what comes after it does (measured, 2.3.2 on every target, 2.5.0 on three). What it
gets right, constants that are the same for every row, other rules fold as well, at the same price; but for one number
for each x of a batch, which costs a Mul then."""

WORKING_FOLDER = "/proc/self/cwd"
"""The one name of the working directory that is the same in every build. The toolkit makes the names of its files
absolute for the compiler, and how long they are would move all that the compiler allocates behind them."""


class StepFailed(Exception):
    """A step of the toolkit failed without raising; the message is half a sentence."""


class Journal:
    """What is known so far, written to `result.json` before each step, so that it is there after a crash as well."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data: dict[str, Any] = {"step": "start", "codes": {}}

    def note(self, **values: object) -> None:
        """Adds `values` and writes the file."""
        self._data.update(values)
        self._path.write_text(json.dumps(self._data))

    def code(self, step: str, code: object) -> None:
        """Notes what the toolkit returned for `step`.

        Raises:
            StepFailed: it is not 0.
        """
        codes = self._data["codes"]
        codes[step] = code if isinstance(code, int) else repr(code)
        self.note()
        if code != 0:
            raise StepFailed(f"{step} returned {code!r}")


def main(request_path: Path) -> int:
    """Does what the request in `request_path` asks for; returns the exit code.

    The request's keys: onnx, engine (file names), target, toolkit (the version), custom_string, optimization_level,
    disable_rules; feeds, windows of inputs, and simulated, a file name (both null where nothing is simulated);
    quantisation (null: fp16), with dtype, algorithm, method and calibration, windows of inputs.
    Windows of inputs are an npz: file, its name; windows, how many; names, one for each array of a window. Array j of
    window i is "i_j" there, of the input names[j], and in `simulated`, of output j.
    """
    request = json.loads(request_path.read_text())
    journal = Journal(request_path.with_name(RESULT_FILE))
    code = EXIT_ENVIRONMENT
    try:
        journal.note(step="import")
        toolkit = _load_toolkit(request["toolkit"], journal)
        code = EXIT_STEP_FAILED
        _build(toolkit, request, journal)
    except BaseException as error:  # noqa: BLE001 - the toolkit also calls sys.exit
        traceback.print_exc()
        journal.note(error=_describe(error), disk_full=getattr(error, "errno", None) == errno.ENOSPC)
        return code
    finally:
        journal.note(peak_rss_bytes=_peak_rss_bytes())
    journal.note(step="done")
    return EXIT_DONE


def _load_toolkit(wanted: str, journal: Journal) -> Any:
    """The class rknn.api.RKNN of the version `wanted`."""
    torch = _beside("torch_standin").install()
    _beside("steady_memory").install(lambda steady: journal.note(fixed_addresses=steady))
    os.getcwd = lambda: WORKING_FOLDER
    from rknn.api import RKNN

    versions = {name: importlib.metadata.version(name) for name in ("rknn-toolkit2", "numpy", "onnx", "onnxruntime")}
    if torch == "real":
        torch = importlib.metadata.version("torch")
    journal.note(versions={**versions, "python": sys.version.split()[0], "torch": torch})
    if versions["rknn-toolkit2"] != wanted:
        raise StepFailed(f"it holds rknn-toolkit2 {versions['rknn-toolkit2']}, not {wanted}")
    return RKNN


def _beside(name: str) -> Any:
    """The module `name` of the folder of this file, which is not on the path."""
    spec = importlib.util.spec_from_file_location(f"rknn_tts_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(toolkit: Any, request: dict[str, Any], journal: Journal) -> None:
    inputs, outputs = _read_graph(request["onnx"], journal)
    journal.note(step="config")
    session = toolkit(verbose=True)  # the layer table is printed only then
    config = {
        "target_platform": request["target"],
        "optimization_level": request["optimization_level"],
        "custom_string": request["custom_string"],
    }
    config["disable_rules"] = [*WRONG_RULES, *request["disable_rules"]]
    quantisation = request["quantisation"]
    if quantisation is not None:
        config.update({f"quantized_{key}": quantisation[key] for key in ("dtype", "algorithm", "method")})
    journal.code("config", session.config(**{key: value for key, value in config.items() if value is not None}))
    journal.note(step="load_onnx")
    journal.code("load_onnx", session.load_onnx(_as_it_loads(request["onnx"])))
    dataset = {} if quantisation is None else {"dataset": _write_dataset(quantisation["calibration"], inputs)}
    journal.note(step="build")
    built = session.build(do_quantization=quantisation is not None, **dataset)
    _flush_native_output()
    journal.code("build", built)
    journal.note(step="export_rknn")
    journal.code("export_rknn", session.export_rknn(request["engine"]))
    if request["feeds"]:
        journal.note(step="init_runtime")
        journal.code("init_runtime", session.init_runtime())
        journal.note(step="inference")
        _simulate(session, request, inputs, outputs)
    journal.note(step="release")
    session.release()


def _as_it_loads(path: str) -> str:
    """The file that the toolkit is to load for the ONNX `path`: a copy with its weights beside it where it is large.

    Both copies are in the working directory, under names that are always the same.
    """
    if Path(path).stat().st_size < LARGE_BYTES:
        return path
    import onnx

    model = onnx.load(path, load_external_data=False)
    onnx.save_model(model, LARGE_FILE, save_as_external_data=True, location=WEIGHTS_FILE)
    return LARGE_FILE


def _flush_native_output() -> None:
    """Print what the compiler has left in C's own buffer of fd 1.

    `No lowering found for: X` stays there until the process ends (measured, 2.3.2), and a crash of the simulator would
    lose it.
    """
    ctypes.CDLL(None).fflush(None)


def _read_graph(path: str, journal: Journal) -> tuple[list[tuple[str, Any, list[int]]], list[str]]:
    """Name, numpy dtype and shape of every input of the ONNX, and the names of its outputs, each in its order."""
    import onnx

    journal.note(step="read")
    graph = onnx.load(path, load_external_data=False).graph
    outputs = [value.name for value in graph.output]
    journal.note(outputs=outputs)
    return _inputs_in_use(graph), outputs


def _inputs_in_use(graph: Any) -> list[tuple[str, Any, list[int]]]:
    """Name, numpy dtype and shape of every input, in the order of the ONNX, which is the order of the engine's.

    Raises:
        StepFailed: nothing reads one of them. The toolkit would drop it without a word, and the engine would have other
            inputs than its contract says (measured on 2.3.2).
    """
    import onnx

    initializers = {tensor.name for tensor in graph.initializer}
    read = {name for node in _all_nodes(graph) for name in node.input} | {value.name for value in graph.output}
    inputs = [value for value in graph.input if value.name not in initializers]
    for value in inputs:
        if value.name not in read:
            raise StepFailed(f"no node reads the input {value.name!r}, so the toolkit would drop it from the engine")

    def described(value: Any) -> tuple[str, Any, list[int]]:
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        return value.name, dtype, [dimension.dim_value for dimension in tensor.shape.dim]

    return [described(value) for value in inputs]


def _all_nodes(graph: Any) -> list[Any]:
    """The nodes of `graph` and of the graphs inside them."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return [*graph.node, *(node for subgraph in inner for node in _all_nodes(subgraph))]


def _windows(given: dict[str, Any], inputs: Sequence[tuple[str, Any, list[int]]], what: str) -> Iterator[list[Any]]:
    """The arrays of each window, in the order of `inputs`, for the toolkit goes by position; `what` they are.

    Raises:
        StepFailed: a window lacks an input, or has another type or shape than the ONNX says.
    """
    import numpy as np

    with np.load(given["file"]) as stored:
        for window in range(given["windows"]):
            named = {name: stored[f"{window}_{index}"] for index, name in enumerate(given["names"])}
            if missing := [name for name, _, _ in inputs if name not in named]:
                raise StepFailed(f"{what} {window} has no array for {', '.join(map(repr, missing))}")
            arrays = [named[name] for name, _, _ in inputs]
            for array, (name, dtype, shape) in zip(arrays, inputs, strict=True):
                if array.dtype != dtype or list(array.shape) != shape:
                    raise StepFailed(
                        f"{what} {window} has for the input {name!r} {array.dtype}{list(array.shape)}, "
                        f"the ONNX says {dtype}{shape}"
                    )
            yield arrays


def _write_dataset(calibration: dict[str, Any], inputs: Sequence[tuple[str, Any, list[int]]]) -> str:
    """The toolkit's list of what it finds ranges on: a line for each window, a file for each input, in its order.

    Arrays of rank 4 are taken as they lie in the ONNX, NCHW: others are refused (measured, 2.3.2).
    """
    import numpy as np

    folder, lines = Path(CALIBRATION_FOLDER), []
    folder.mkdir()
    for window, arrays in enumerate(_windows(calibration, inputs, "calibration window")):
        files = [folder / f"{window}_{index}.npy" for index in range(len(arrays))]
        for file, array in zip(files, arrays, strict=True):
            np.save(file, array)
        lines.append(" ".join(map(str, files)))
    Path(DATASET_FILE).write_text("\n".join(lines) + "\n")
    return DATASET_FILE


def _simulate(
    session: Any, request: dict[str, Any], inputs: Sequence[tuple[str, Any, list[int]]], outputs: Sequence[str]
) -> None:
    """One pass of the toolkit's simulator for each window.

    Raises:
        StepFailed: a feed does not fit, or the simulator does not give one array for each of `outputs`.
    """
    import numpy as np

    simulated = {}
    for window, arrays in enumerate(_windows(request["feeds"], inputs, "window")):
        # Without it the simulator takes every input of rank 4 as NHWC; other ranks are left alone.
        computed = session.inference(inputs=arrays, data_format="nchw")
        if computed is None:
            raise StepFailed(f"inference returned nothing for window {window}")
        if len(computed) != len(outputs):
            raise StepFailed(
                f"inference returned {len(computed)} arrays for window {window}, and the ONNX has {len(outputs)} "
                f"outputs ({', '.join(outputs)})"
            )
        simulated.update({f"{window}_{index}": array for index, array in enumerate(computed)})
    np.savez(request["simulated"], **simulated)


def _describe(error: BaseException) -> str:
    """The last line that tells something; the toolkit puts whole tracebacks into messages."""
    if isinstance(error, SystemExit):
        return f"the toolkit called exit({error.code!r})"
    lines = [line.strip() for line in str(error).split("\n") if line.strip(" \r\x1b[0m")]
    if isinstance(error, StepFailed):
        return lines[-1]
    if len(lines) > 1:  # the toolkit's own traceback: its last line already names the exception
        return lines[-1]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _peak_rss_bytes() -> int:
    """Largest resident memory of this process. Not getrusage: that starts with what our parent held at fork."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
