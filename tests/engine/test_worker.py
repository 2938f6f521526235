"""The worker's own part: what it reads from the ONNX, asks of a toolkit (here a script in its place) and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine.worker import (
    LARGE_BYTES,
    LARGE_FILE,
    WEIGHTS_FILE,
    Journal,
    StepFailed,
    _as_it_loads,
    _build,
    _describe,
    _inputs_in_use,
    _read_graph,
    _simulate,
    _write_dataset,
)
from tests.engine.graphs import conv_graph, random, random_feed, reference, save_graph

F32 = np.dtype(np.float32)


def read(path: Path) -> dict[str, Any]:
    """The JSON object in the file `path`."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_journal_file_holds_all_that_was_noted_when_more_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    journal = Journal(path)
    journal.note(step="config", versions={"numpy": "1"})
    assert read(path) == {"step": "config", "codes": {}, "versions": {"numpy": "1"}}
    journal.code("config", 0)
    journal.note(step="build")
    assert read(path) == {"step": "build", "codes": {"config": 0}, "versions": {"numpy": "1"}}


@pytest.mark.parametrize(("code", "kept"), [(-1, -1), (None, "None"), ("-1", "'-1'")])
def test_journal_keeps_the_code_and_raises_when_it_is_not_0(tmp_path: Path, code: object, kept: object) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(StepFailed, match=rf"^build returned {code!r}$"):
        Journal(path).code("build", code)
    assert read(path)["codes"] == {"build": kept}


def weighted() -> onnx.GraphProto:
    """y = x + w; the weight w is listed as an input too, as old exporters do; ids is put out, and read by no node."""
    tensors = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("w", TensorProto.FLOAT, [4]),
            ("x", TensorProto.FLOAT, [1, 4]),
            ("ids", TensorProto.INT64, [2]),
            ("y", TensorProto.FLOAT, [1, 4]),
        )
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return helper.make_graph([node], "g", tensors[:3], [tensors[3], tensors[2]], [weight])


def test_inputs_in_use_are_named_in_order_without_weights() -> None:
    assert _inputs_in_use(weighted()) == [("x", F32, [1, 4]), ("ids", np.dtype(np.int64), [2])]


def test_inputs_in_use_count_what_only_a_branch_reads() -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y", "t", "e")]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [value[2]])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value[3]])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other)
    graph = helper.make_graph([node], "g", [flag, value[0]], [value[1]])
    assert [name for name, _, _ in _inputs_in_use(graph)] == ["flag", "x"]


def test_inputs_in_use_names_the_input_when_nothing_reads_it(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save_graph(tmp_path / "g.onnx", [node], {"speed": (1,), "x": (1,)}, {"y": (1,)}, {})
    with pytest.raises(StepFailed, match="no node reads the input 'speed'"):
        _inputs_in_use(onnx.load(path).graph)


def test_read_graph_reports_the_outputs_before_it_may_fail(tmp_path: Path) -> None:
    path, journal = conv_graph(tmp_path / "g.onnx"), Journal(tmp_path / "result.json")
    assert _read_graph(str(path), journal) == ([("x", F32, [1, 3, 8, 12])], ["y"])
    assert read(tmp_path / "result.json") == {"step": "read", "codes": {}, "outputs": ["y"]}


class Simulator:
    """Stands for the toolkit's session: gives `outputs` whatever it is fed, and remembers that."""

    def __init__(self, outputs: Sequence[Any] | None) -> None:
        self.outputs = outputs
        self.fed: list[list[float]] = []

    def inference(self, inputs: Sequence[Any], data_format: str) -> Sequence[Any] | None:
        assert data_format == "nchw"
        self.fed.append([float(array[0]) for array in inputs])
        return self.outputs


def two_windows(folder: Path) -> dict[str, Any]:
    """What the worker is told of two windows of the inputs a and b, [1] each: 0 and 1, 10 and 11."""
    arrays: dict[str, Any] = {f"{w}_{i}": np.full(1, 10 * w + i, np.float32) for w in range(2) for i in range(2)}
    np.savez(folder / "feeds.npz", **arrays)
    return {"file": str(folder / "feeds.npz"), "windows": 2, "names": ["a", "b"]}


def test_dataset_lists_a_file_for_each_input_in_the_order_of_the_onnx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = _write_dataset(two_windows(tmp_path), [("b", F32, [1]), ("a", F32, [1])])
    lines = (tmp_path / name).read_text().splitlines()
    assert [[float(np.load(tmp_path / file)[0]) for file in line.split(" ")] for line in lines] == [[1, 0], [11, 10]]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([("a", F32, [1]), ("c", F32, [1])], "^calibration window 0 has no array for 'c'$"),
        (
            [("a", F32, [2])],
            r"^calibration window 0 has for the input 'a' float32\[1\], the ONNX says float32\[2\]$",
        ),
        ([("b", np.dtype(np.int64), [1])], "has for the input 'b' float32"),
    ],
)
def test_dataset_is_none_when_a_window_does_not_fit(
    inputs: list[tuple[str, Any, list[int]]], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StepFailed, match=words):
        _write_dataset(two_windows(tmp_path), inputs)


class Toolkit:
    """Stands for the class RKNN: remembers how it was configured and what it was to build."""

    def __init__(self, verbose: bool) -> None:
        self.told: dict[str, Any] = {"verbose": verbose}
        TOLD.append(self.told)

    def config(self, **options: Any) -> int:
        self.told["config"] = options
        return 0

    def build(self, **options: Any) -> int:
        self.told["build"] = options
        return 0

    def load_onnx(self, file: str) -> int:
        self.told["file"] = file
        return 0

    def export_rknn(self, file: str) -> int:
        return 0

    def release(self) -> None:
        pass


TOLD: list[dict[str, Any]] = []


def wide_graph(path: Path) -> Path:
    """A convolution by 4 KiB of weights, with a bias of 128 B."""
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    weights = {"w": random(32, 32, 1, 1), "b": random(32)}
    return save_graph(path, [node], {"x": (1, 32, 1, 5)}, {"y": (1, 32, 1, 5)}, weights)


@pytest.mark.parametrize(("room", "loaded"), [(0, LARGE_FILE), (1, "g.onnx")])
def test_toolkit_loads_a_graph_from_a_size_on_with_its_weights_apart(
    room: int, loaded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = wide_graph(Path("g.onnx"))
    monkeypatch.setattr("engine.worker.LARGE_BYTES", path.stat().st_size + room)
    _build(Toolkit, plain_request(), Journal(tmp_path / "result.json"))
    assert TOLD[-1]["file"] == loaded
    assert Path(WEIGHTS_FILE).exists() == (loaded == LARGE_FILE)


def test_weights_apart_are_those_of_the_graph_whose_file_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = wide_graph(Path("g.onnx"))
    given = path.read_bytes()
    monkeypatch.setattr("engine.worker.LARGE_BYTES", 0)
    apart = Path(_as_it_loads("g.onnx"))
    assert path.read_bytes() == given
    assert Path(WEIGHTS_FILE).read_bytes() == random(32, 32, 1, 1).tobytes()
    assert apart.stat().st_size < 1024 < len(given)
    feed = random_feed(path)
    np.testing.assert_array_equal(reference(apart, feed)["y"], reference(path, feed)["y"])


def test_a_gibibyte_is_large() -> None:
    assert LARGE_BYTES == 1024**3


def plain_request() -> dict[str, Any]:
    """What the worker is asked for in fp16, and no simulation."""
    return {
        "onnx": "g.onnx",
        "engine": "e.rknn",
        "target": "rk3588",
        "optimization_level": 3,
        "custom_string": None,
        "disable_rules": [],
        "feeds": None,
        "quantisation": None,
    }


@pytest.mark.parametrize("quantised", [False, True])
def test_toolkit_quantises_only_what_is_asked_to_be(
    quantised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays: dict[str, Any] = {"0_0": random_feed(conv_graph(tmp_path / "g.onnx"))["x"]}
    np.savez("calibration.npz", **arrays)
    request = plain_request()
    if quantised:
        told = {"file": "calibration.npz", "windows": 1, "names": ["x"]}
        request["quantisation"] = {"dtype": "w8a8", "algorithm": "mmse", "method": "layer", "calibration": told}
    _build(Toolkit, request, Journal(tmp_path / "result.json"))
    config, build = TOLD[-1]["config"], TOLD[-1]["build"]
    asked = {name: value for name, value in config.items() if name.startswith("quantized")}
    if quantised:
        assert asked == {"quantized_dtype": "w8a8", "quantized_algorithm": "mmse", "quantized_method": "layer"}
        assert build == {"do_quantization": True, "dataset": "dataset.txt"}
    else:
        assert asked == {}
        assert build == {"do_quantization": False}


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs `_simulate` over two windows of the inputs b and a, [1] each, for an ONNX with the outputs y and z."""

    def run(session: Simulator) -> dict[str, Any]:
        request: dict[str, Any] = {"feeds": two_windows(tmp_path), "simulated": str(tmp_path / "simulated.npz")}
        _simulate(session, request, [("b", F32, [1]), ("a", F32, [1])], ["y", "z"])
        with np.load(request["simulated"]) as simulated:
            return {name: float(simulated[name]) for name in simulated}

    return run


def test_simulate_feeds_by_name_and_keeps_each_output_of_each_window(simulate: Callable[..., dict[str, Any]]) -> None:
    session = Simulator([np.float32(5), np.float32(6)])
    assert simulate(session) == {"0_0": 5, "0_1": 6, "1_0": 5, "1_1": 6}
    assert session.fed == [[1, 0], [11, 10]]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (None, "returned nothing for window 0"),
        ([], r"returned 0 arrays for window 0, and the ONNX has 2 outputs \(y, z\)"),
        ([np.float32(5)], "returned 1 arrays"),
        ([np.float32(5)] * 3, "returned 3 arrays"),
    ],
)
def test_simulate_fails_when_there_is_not_an_array_for_each_output(
    outputs: Sequence[Any] | None, words: str, simulate: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(StepFailed, match=words):
        simulate(Simulator(outputs))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StepFailed("build returned -1"), "build returned -1"),
        (KeyError("cond"), "KeyError: 'cond'"),
        (ValueError(), "ValueError"),
        (SystemExit(-1), "the toolkit called exit(-1)"),
        (RuntimeError("Traceback (most recent call last):\n  File x\r\n\nTypeError: why\n\x1b[0m\n"), "TypeError: why"),
        (ValueError("a\x85b\u2028c"), "ValueError: a\x85b\u2028c"),
        (OSError(28, os.strerror(28)), "OSError: [Errno 28] No space left on device"),
    ],
)
def test_describe_gives_the_line_that_tells_something(error: BaseException, text: str) -> None:
    assert _describe(error) == text
