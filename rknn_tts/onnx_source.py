"""What `compile` is given: an ONNX that carries its contract, or one that nobody made for us."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.contract import Contract, Source, TensorSpec
from contracts.errors import Refusal
from contracts.files import sha256_of
from converters.onnx_file import read_onnx
from rknn_tts.carried import carried_contract
from rknn_tts.onnx_to_engine import OnnxSource


def open_source(path: Path) -> OnnxSource:
    """Read the ONNX in `path`, its contract and the host half beside it.

    Raises:
        UserInput: no ONNX, or a damaged contract.
        Refusal: an input of a foreign ONNX has no static shape.
    """
    model = read_onnx(path)
    contract = carried_contract(model, str(path))
    if contract is None:
        return OnnxSource(path, path.stem, _foreign_contract(model, path), None, ())
    if contract.host is None:
        return OnnxSource(path, path.stem, contract, None, ())
    host = path.with_name(contract.host.file)
    if host.is_file() and sha256_of(host) == contract.host.sha256:
        return OnnxSource(path, path.stem, contract, host, ())
    what = "another one than this ONNX was exported with" if host.is_file() else "missing"
    note = f"The host half {host.name} beside {path.name} is {what}, so none is put beside the engine."
    return OnnxSource(path, path.stem, contract, None, (note,))


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
        raise Refusal(f"{path}: the tensor {value.name} has no static shape ({sizes}); the NPU needs one: export it so.")
    dtype = np.dtype(value.dtype.numpy()).name if value.dtype is not None else "float32"
    return TensorSpec(str(value.name), tuple(int(size) for size in value.shape if isinstance(size, int)), dtype)
