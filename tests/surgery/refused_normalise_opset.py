"""Graphs whose operators cannot be brought to an opset of 13 to 19."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.normalise_opset import AN_EQUAL, KNOWN_OPSET, ONE_OPSET, normalise_opset
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.surgery.refusals import Refusal


def one_node(
    op: str,
    opset: int,
    shape: Sequence[int] = (1, 4, 6, 8),
    constants: Sequence[onnx.TensorProto] = (),
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> ir.Model:
    """The node `n` of `op` on x and `constants`; outputs in any shape."""
    names = ["x", *(weight.name for weight in constants)] if inputs is None else inputs
    node = helper.make_node(op, names, outputs, "n", **attributes)
    made = [tensor(name, list("abcd"[: len(shape)])) for name in outputs if name]
    return model([node], [tensor("x", shape)], made, constants, opset=opset, ir_version=10)


def two_numbers() -> ir.Model:
    """Both spellings of ONNX's domain, with two opsets."""
    made = chain("Relu", "Abs")
    made.opset_imports["ai.onnx"] = 18
    return made


def blocked_weights() -> ir.Model:
    """int8 weights with a scale for every two rows."""
    weights, scales = constant("w", np.ones((4, 4)), np.int8), constant("s", np.ones((2, 4)))
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], "n", axis=0, block_size=2),
        helper.make_node("MatMul", ["x", "d"], ["y"], "product"),
    ]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [weights, scales], opset=21, ir_version=10)


def four_bits() -> ir.Model:
    """An int4 weight that is transposed."""
    weight = helper.make_tensor("w", TensorProto.INT4, [2, 2], [1, 2, 3, 4])
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], "n"),
        helper.make_node("Cast", ["t"], ["c"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "c"], ["y"], "sum"),
    ]
    return model(nodes, [tensor("x", [2, 2])], [tensor("y", [2, 2])], [weight], opset=21, ir_version=10)


def read_mask() -> ir.Model:
    """A Dropout whose mask is an output."""
    return one_node("Dropout", 10, outputs=("y", "mask"))


def unknown_heads() -> ir.Model:
    """Attention on what an operator of somebody else's makes."""
    nodes = [
        helper.make_node("Heads", ["x"], ["h"], "heads", domain="com.example"),
        helper.make_node("Attention", ["h", "h", "h"], ["y"], "n"),
    ]
    made = model(nodes, [tensor("x", [1, 2, 4, 8])], [tensor("y", list("abcd"))], opset=23, ir_version=10)
    made.opset_imports["com.example"] = 1
    return made


def _refuses(precondition: str, node: str, got: str, build: Any) -> Refusal:
    return Refusal(normalise_opset(), precondition, node, got, build)


def _node(got: str, op: str, opset: int, **options: Any) -> Refusal:
    return _refuses(AN_EQUAL, "n", got, lambda: one_node(op, opset, **options))


_AXIS = constant("a", 1, np.int64)
_FOUR = [constant(name, np.ones(4)) for name in ("s", "b", "m", "v")]

REFUSALS = (
    _refuses(ONE_OPSET, "the graph", "[17, 18]", two_numbers),
    _refuses(KNOWN_OPSET, "the graph", "opset 6", lambda: chain("Relu", opset=6)),
    _refuses(KNOWN_OPSET, "the graph", "opset 99", lambda: chain("Relu", opset=99)),
    _node("new since opset 19", "CumProd", 26, constants=[_AXIS]),
    _node("wrong for a batch of one", "AffineGrid", 20, constants=[constant("z", [1, 3, 4, 5], np.int64)]),
    _node("no such operator", "Gelu", 11),
    _node("no such operator", "Upsampled", 22),
    _node("the rank 5", "GridSample", 22, shape=(1, 2, 3, 4, 5), constants=[constant("g", np.zeros((1, 1, 1, 1, 3)))]),
    _refuses(AN_EQUAL, "n", "block_size is 2", blocked_weights),
    _refuses(AN_EQUAL, "n", "tensor(int4)", four_bits),
    _refuses(AN_EQUAL, "n", "mask is read", read_mask),
    _refuses(AN_EQUAL, "n", "shapes that are not known", unknown_heads),
    _node("it is not valid (KeyError: 'k')", "TopK", 9),
    _node("it is not valid (TypeError", "Clip", 9, min=0),
    _node("spatial is 0", "BatchNormalization", 8, constants=_FOUR, spatial=0),
    _node("shrink another", "Resize", 10, constants=[constant("s", [1, 1, 2, 0.5])]),
    _node("its scales are computed", "Resize", 10, shape=(4,), inputs=["x", "x"]),
)
