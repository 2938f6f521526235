"""Graphs that `fold_constants` refuses: tensors that nothing can hold."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from surgery.fold_constants import fold_constants
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.branches import node
from tests.surgery.refusals import Refusal


def of_constants(op: str, *weights: onnx.TensorProto, rank: int = 1) -> ir.Model:
    """`op` of constants, beside the real graph."""
    nodes = [node("Neg", ["x"], "y"), node(op, [weight.name for weight in weights], "z")]
    return model(
        nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4]), tensor("z", "abcd"[:rank], _kind(op, weights))], weights
    )


def _kind(op: str, weights: tuple[onnx.TensorProto, ...]) -> int:
    return onnx.TensorProto.FLOAT if op == "ConstantOfShape" else weights[0].data_type


def whole(name: str, *values: int) -> onnx.TensorProto:
    return constant(name, values, np.int64)


def scalars(*values: float, dtype: type = np.int64) -> list[onnx.TensorProto]:
    return [constant(name, value, dtype) for name, value in zip("abc", values, strict=True)]


def expanded_input() -> ir.Model:
    nodes = [node("Expand", ["x", "sizes"], "y")]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", ["n", 4])], [whole("sizes", 10**9, 4)])


def doubled() -> ir.Model:
    """Each Tile makes its input a thousand times as large."""
    names = ["k", "a", "b", "c", "z"]
    nodes = [node("Neg", ["x"], "y")] + [node("Tile", [names[i], "by"], names[i + 1]) for i in range(4)]
    weights = [constant("k", [1.0, 2.0]), whole("by", 1000)]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4]), tensor("z", ["n"])], weights)


def _refused(node_name: str, got: str, op: str, *weights: onnx.TensorProto, rank: int = 1) -> Refusal:
    return Refusal(fold_constants(), A_SIZE, node_name, got, lambda: of_constants(op, *weights, rank=rank))


A_SIZE = "tensors that can be held"
_ONE = constant("a", [1.0])

REFUSALS = (
    _refused("make_z", "ConstantOfShape makes one of 3725.3 GiB", "ConstantOfShape", whole("a", 10**6, 10**6), rank=2),
    _refused("make_z", "shape [1000000000000, 1000000000000]", "ConstantOfShape", whole("a", 10**12, 10**12), rank=2),
    _refused("make_z", "Expand makes one of 3725.3 GiB", "Expand", _ONE, whole("b", 10**12)),
    _refused("make_z", "Tile makes one of 3725.3 GiB", "Tile", _ONE, whole("b", 10**12)),
    _refused("make_z", "Pad makes one of", "Pad", _ONE, whole("b", 0, 10**12)),
    _refused("make_z", "Range makes one of 7450.6 GiB", "Range", *scalars(0, 10**12, 1)),
    _refused("make_z", "Range makes one without end", "Range", *scalars(0, 10, 0)),
    _refused("make_z", "Range makes one without end", "Range", *scalars(0, 10, 0, dtype=np.float32)),
    _refused("make_z", "Range makes one without end", "Range", *scalars(0, np.inf, 1, dtype=np.float32)),
    _refused("make_z", "Range makes one of", "Range", *scalars(0, 1e30, 1e-6, dtype=np.float32)),
    Refusal(fold_constants(), A_SIZE, "make_y", "Expand makes one of 14.9 GiB, shape [1000000000, 4]", expanded_input),
    Refusal(fold_constants(), A_SIZE, "make_c", "Tile makes one of 7.5 GiB", doubled),
)
