"""What `compile` is given: an ONNX that carries its contract, or one that nobody made for us."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.contract import Contract, Source, TensorSpec
from contracts.errors import Refusal
from contracts.files import sha256_of
from converters.onnx_file import read_onnx
from rknn_tts.carried import carried_contract, carried_feeds, check_seal, feeds_to_npz, without_carried
from rknn_tts.export_step import Proof
from rknn_tts.feeds import stand_in_feed
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.steps import Steps


def open_source(path: Path, steps: Steps) -> OnnxSource:
    """Read the ONNX in `path`, what it carries, and the host half beside it.

    Raises:
        UserInput: no ONNX, or what it carries is damaged.
        Refusal: an input of a foreign ONNX has no static shape.
    """
    model = read_onnx(path)
    contract = carried_contract(model, str(path))
    if contract is None:
        feeds = feeds_to_npz([stand_in_feed(model, str(path))])
        return OnnxSource(path, path.stem, _foreign_contract(model, path), None, feeds, _nothing_proven, ())

    def bare(folder: Path) -> None:
        data = path.read_bytes()
        check_seal(data, str(path))
        (folder / "model.onnx").write_bytes(without_carried(data))

    graph = steps.folder("bare", {"onnx": sha256_of(path)}, bare) / "model.onnx"
    host, notes = _host_beside(contract, path)
    proof = Proof(contract.passes, contract.verdicts, contract.measurements)
    contract = dataclasses.replace(contract, passes=(), verdicts=(), measurements=())
    feeds = feeds_to_npz(carried_feeds(model, str(path)))
    return OnnxSource(graph, path.stem, contract, host, feeds, lambda: proof, notes)


def _host_beside(contract: Contract, path: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The host half beside `path`, if it is the one `contract` names; else a sentence about it."""
    if contract.host is None:
        return None, ()
    host = path.with_name(contract.host.file)
    if host.is_file() and sha256_of(host) == contract.host.sha256:
        return host, ()
    what = "another one than this ONNX was exported with" if host.is_file() else "missing"
    return None, (f"The host half {host.name} beside {path.name} is {what}, so none is put beside the engine.",)


def _nothing_proven() -> Proof:
    """A foreign ONNX has no full-length original: only the gates on its own graph are owed."""
    return Proof((), (), ())


def _foreign_contract(model: ir.Model, path: Path) -> Contract:
    graph = model.graph
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    return Contract(
        family=None,
        stage=None,
        source=Source(path.name, sha256_of(path), "checkpoint"),
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
