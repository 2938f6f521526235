"""The graph behind all passes, as it is compiled: its bytes, and what its contract says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx_ir as ir

from contracts.contract import Contract, TensorSpec
from contracts.errors import Refusal
from converters.large_onnx import stream_onnx
from converters.onnx_file import MESSAGE_LIMIT_BYTES
from surgery.declaration import Rewritten
from surgery.interface import numpy_dtype

UNKNOWN_SIZE = -1
"""Stands in a contract for a size that nothing gives; the structural gate refuses such a graph."""


def serialised(model: ir.Model) -> bytes:
    """The bytes of `model`, the same for the same graph; `write_onnx` writes them where they are many."""
    pieces: list[bytes] = []
    stream_onnx(model, pieces.append)
    return b"".join(pieces)


def check_size(name: str, model: ir.Model) -> None:
    """Refuse a `model` whose weights are too large for one file; sentences begin with `name`.

    Raises:
        Refusal: it is.
    """
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    for node in model.graph.all_nodes():
        held = [a.as_tensor() for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
        tensors += [tensor for tensor in held if tensor.dtype != ir.DataType.STRING]
    size_bytes = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    if size_bytes >= MESSAGE_LIMIT_BYTES:
        raise Refusal(
            f"{name}: has {size_bytes / 1e9:.1f} GB of weights, and the toolkit is given one file, which holds "
            f"{MESSAGE_LIMIT_BYTES / 1e9:.1f} GB at most: compile a smaller part of it."
        )


def fed_inputs(model: ir.Model) -> list[ir.Value]:
    """The inputs of `model` that have no weight to fall back on."""
    return [value for value in model.graph.inputs if value.name not in model.graph.initializers]


def described(contract: Contract, finished: ir.Model, rewritten: Sequence[Rewritten]) -> Contract:
    """`contract` with the inputs and outputs of the `finished` graph, and the noise that passes made inputs of."""
    inputs = tuple(_spec(value) for value in fed_inputs(finished))
    added = [added.noise for result in rewritten for added in result.interface.added]
    names = {spec.name for spec in inputs}
    return dataclasses.replace(
        contract,
        inputs=inputs,
        outputs=tuple(_spec(value) for value in finished.graph.outputs),
        noise=tuple(noise for noise in (*contract.noise, *added) if noise.input in names),
    )


def _spec(value: ir.Value) -> TensorSpec:
    shape = tuple(size if isinstance(size, int) else UNKNOWN_SIZE for size in value.shape or ())
    return TensorSpec(str(value.name), shape, numpy_dtype(value))
