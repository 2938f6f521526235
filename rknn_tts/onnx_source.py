"""What `compile` is given: an ONNX that carries its contract, or one that nobody made for us."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from contracts.contract import NAME_ADVICE, Contract, Source, TensorSpec, is_file_name
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of
from converters.onnx_file import external_files, read_onnx
from rknn_tts.carried import carried_contract, carried_feeds, check_seal, feeds_to_npz, without_carried
from rknn_tts.export_step import Proof
from rknn_tts.feeds import stand_in_feed
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.steps import Steps

MESSAGE_LIMIT_BYTES = 1 << 31
"""Of a protobuf message, and so of an ONNX without external data (protobuf's documentation)."""


def open_source(path: Path, steps: Steps) -> OnnxSource:
    """Read the ONNX in `path`, what it carries, and the host half beside it.

    What is judged, compiled and published is a copy in the cache, without what it carries and with its external data
    inside: the user may go on with the file meanwhile.

    Raises:
        UserInput: no ONNX, or what it carries is damaged, or it was changed while it was read.
        Refusal: an input of a foreign ONNX has no static shape.
    """
    if not is_file_name(path.name):
        raise UserInput(f"{path!s:.300}: {NAME_ADVICE}")
    before = _digests(path)
    model = read_onnx(path)
    contract = carried_contract(model, str(path))
    exported = contract is not None

    def bare(folder: Path) -> None:
        (folder / "model.onnx").write_bytes(_exported_graph(path) if exported else _whole_graph(path))
        _check_unchanged(path, before)

    graph = steps.folder("bare", before, bare) / "model.onnx"
    proof = Proof((), (), ())  # a foreign ONNX has no full-length original: only the gates on its own graph are owed
    host: Path | None = None
    notes: tuple[str, ...] = ()
    if contract is None:
        feeds = feeds_to_npz([stand_in_feed(model, str(path))])
        contract = _foreign_contract(model, path, before["onnx"])
    else:
        feeds = feeds_to_npz(carried_feeds(model, str(path)))
        host, notes = _host_beside(contract, path)
        proof = Proof(contract.passes, contract.verdicts, contract.measurements)
        contract = dataclasses.replace(contract, passes=(), verdicts=(), measurements=())
    _check_unchanged(path, before)
    inputs = (path, *external_files(path))
    return OnnxSource(graph, path.stem, contract, host, feeds, lambda: proof, notes, inputs, exported)


def _digests(path: Path) -> dict[str, str]:
    """Of the ONNX, and of the files with its external data."""
    if not path.is_file():
        read_onnx(path)  # says what is wrong
    data = " ".join(f"{file.relative_to(path.parent)}:{sha256_of(file)}" for file in external_files(path))
    return {"onnx": sha256_of(path), "data": data}


def _check_unchanged(path: Path, before: Mapping[str, str]) -> None:
    if _digests(path) != before:
        raise UserInput(f"{path}: was changed while it was read; run the command again.")


def _exported_graph(path: Path) -> bytes:
    data = path.read_bytes()
    check_seal(data, str(path))
    return without_carried(data)


def _whole_graph(path: Path) -> bytes:
    """The bytes of a foreign ONNX, its external data inside."""
    files = (path, *external_files(path))
    if len(files) == 1:
        return path.read_bytes()
    size_bytes = sum(file.stat().st_size for file in files)
    if size_bytes >= MESSAGE_LIMIT_BYTES:
        raise Refusal(
            f"{path}: has {size_bytes / 1e9:.1f} GB with its external data, and the toolkit is given one file, which "
            f"holds {MESSAGE_LIMIT_BYTES / 1e9:.1f} GB at most: compile a smaller part of it."
        )
    try:
        return bytes(onnx.load(path).SerializeToString(deterministic=True))
    except (ValueError, OSError, onnx.checker.ValidationError) as error:
        raise Refusal(f"{path}: its external data cannot be read ({error}).") from error


def _host_beside(contract: Contract, path: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The host half beside `path`, if it is the one `contract` names; else a sentence about it."""
    if contract.host is None:
        return None, ()
    host = path.with_name(contract.host.file)
    if host.is_file() and sha256_of(host) == contract.host.sha256:
        return host, ()
    what = "another one than this ONNX was exported with" if host.is_file() else "missing"
    return None, (f"The host half {host.name} beside {path.name} is {what}, so none is put beside the engine.",)


def _foreign_contract(model: ir.Model, path: Path, sha256: str) -> Contract:
    graph = model.graph
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    return Contract(
        family=None,
        stage=None,
        source=Source(path.name, sha256, "checkpoint"),
        inputs=tuple(_spec(value, path) for value in inputs),
        outputs=tuple(_spec(value, path) for value in graph.outputs),
    )


def _spec(value: ir.Value, path: Path) -> TensorSpec:
    if value.shape is None or not all(isinstance(size, int) for size in value.shape):
        sizes = "unknown" if value.shape is None else [str(s) if isinstance(s, int) else s.value for s in value.shape]
        raise Refusal(
            f"{path}: the tensor {value.name} has no static shape ({sizes}); the NPU needs one: export it so."
        )
    dtype = np.dtype(value.dtype.numpy()).name if value.dtype is not None else "float32"
    return TensorSpec(str(value.name), tuple(int(size) for size in value.shape if isinstance(size, int)), dtype)
