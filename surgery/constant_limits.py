"""How much memory and time folding may take, so that a hostile graph is bounded in both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from surgery.constant_nodes import FOLDED, Array, evaluate, is_foldable
from surgery.node_types import Types, is_constant, static_sizes

LARGEST_FOLDED_BYTES = 2**29
"""Largest tensor that is made where there was none: 512 MiB. A causal mask of 8192 positions has 256 in float32, the
largest weight of VGG-19, which ONNX's own test data makes by ConstantOfShape, 392."""

WIDENING = 4
"""A tensor may always be as large as the constants it is made from, widened from int8 to float32."""

MOST_GROWN_BYTES = 2**31
"""How much the weights may grow in all: what a protobuf holds at most, and the toolkit takes graphs as protobuf."""

MOST_WORK = 10**10
"""Elements gone through in all, each times its operator's price: some ten seconds of numpy."""

_WIDEST = 8
"""Bytes of the widest number of ONNX that is folded (int64, double)."""


@dataclass(frozen=True)
class Budget:
    """What may still be spent: bytes by which the weights may grow, and elements at their prices."""

    grown: int = MOST_GROWN_BYTES
    work: int = MOST_WORK


def computed(node: ir.Node, types: Types, opset: int, budget: Budget) -> tuple[list[Array] | None, Budget]:
    """What `node` computes, and what is left of `budget`; None where it depends on data or is past a limit."""
    if not is_foldable(node, types):
        return None, budget
    read = {value: _bytes(value) for value in node.inputs if value is not None and is_constant(value)}
    made = sum(_most_bytes(node, value, types) for value in node.outputs if value.name)
    if made > max(LARGEST_FOLDED_BYTES, WIDENING * sum(read.values())):
        return None, budget
    freed = sum(size for value, size in read.items() if _only_read_by(node, value))
    left = Budget(budget.grown - int(made - freed), budget.work - _work(node, made, sum(read.values())))
    arrays = evaluate(node, types, opset) if min(left.grown, left.work) >= 0 else None
    return (None, budget) if arrays is None else (arrays, left)


def largest_output(node: ir.Node, types: Types) -> tuple[float, list[int]]:
    """Bytes and shape of the largest output of `node` whose size is known; an endless Range has infinitely many."""
    if node.op_type == "Range" and is_foldable(node, types):
        count = _range_length(node)
        return count * _WIDEST, [int(count)] if math.isfinite(count) else []
    known = {value: sizes for value in node.outputs if (sizes := static_sizes(types.get(value))) is not None}
    sized = [(_width(_element(types[value])) * math.prod(sizes), list(sizes)) for value, sizes in known.items()]
    return max(sized, default=(0, []))


def _most_bytes(node: ir.Node, made: ir.Value, types: Types) -> float:
    """An upper bound of the bytes of the output `made`; infinite where there is none."""
    kind = types.get(made)
    if kind is None or not kind.HasField("tensor_type"):
        return math.inf
    if node.op_type == "Range":  # inference miscounts past the range of its type
        return _range_length(node) * _WIDEST
    sizes = static_sizes(kind)
    if sizes is not None:
        return _width(_element(kind)) * math.prod(sizes)
    read = node.inputs[0]
    if node.op_type in ("Compress", "NonZero") and read is not None and read.const_value is not None:
        return _WIDEST * read.const_value.size * max(1, len(read.const_value.shape))
    return math.inf


def _range_length(node: ir.Node) -> float:
    tensors = [value.const_value for value in node.inputs if value is not None and value.const_value is not None]
    start, limit, delta = (float(tensor.numpy().reshape(-1)[0]) for tensor in tensors)
    if delta == 0 or not all(map(math.isfinite, (start, limit, delta))):
        return math.inf
    return max(0.0, math.ceil((limit - start) / delta))


def _work(node: ir.Node, made: float, read: float) -> int:
    """Elements that `node` goes through at its price; an element has at least a byte."""
    if node.op_type in ("MatMul", "Gemm"):  # each element of the output is a sum along an axis of the inputs
        axes = [
            size
            for value in node.inputs
            if value is not None and value.const_value is not None
            for size in value.const_value.shape.numpy()
        ]
        return int(made) * max(axes, default=1)
    return FOLDED[node.op_type] * int(made + read)


def _only_read_by(node: ir.Node, weight: ir.Value) -> bool:
    return weight.consumers() == (node,) and not weight.is_graph_output()


def _element(kind: onnx.TypeProto) -> ir.DataType:
    return ir.DataType(kind.tensor_type.elem_type)


def _bytes(weight: ir.Value) -> float:
    tensor = weight.const_value
    return 0 if tensor is None else tensor.size * _width(tensor.dtype)


def _width(kind: ir.DataType) -> float:
    """Bytes of an element; text, of which nothing is computed, counts as a reference to it."""
    return _WIDEST if kind == ir.DataType.STRING else kind.itemsize
