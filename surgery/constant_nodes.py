"""What a node of constants computes.

onnx's reference evaluator computes it, for the operators of which a test holds it against onnxruntime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from surgery.matching import ONNX_DOMAINS
from surgery.node_types import Types, is_constant, static_sizes, type_of

_QUICK, _LOOP = 1, 1000
"""Prices of an element: in a numpy loop, and in a Python loop (about a nanosecond against a microsecond)."""

FOLDED: Mapping[str, int] = {
    **dict.fromkeys(
        (
            "Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
            "BitwiseXor", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "ConstantOfShape", "Cos",
            "CumSum", "DepthToSpace", "DequantizeLinear", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten",
            "Floor", "Gather", "Gemm", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "LeakyRelu", "Less",
            "LessOrEqual", "Log", "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or",
            "Pad", "Pow", "QuantizeLinear", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
            "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
            "Relu", "Reshape", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax", "SpaceToDepth",
            "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze",
            "Where", "Xor",
        ),
        _QUICK,
    ),
    **dict.fromkeys(("Erf", "GatherElements", "GatherND", "ReverseSequence", "ScatterElements", "ScatterND"), _LOOP),
}  # fmt: skip
"""Operators that are folded, with their prices. Random ones are not: the engine would hold one draw for ever."""

_SINCE: Mapping[str, int] = {"Softmax": 13}
"""Operators that the evaluator knows only in their form since an opset."""

_ALSO_BEFORE: Mapping[str, int] = {"DequantizeLinear": 19}
"""Operators that it has no older form of, and that meant the same before (ONNX operator changelog)."""

TYPE_ONLY: Mapping[str, int] = {"CastLike": 1, "EyeLike": 0, "Shape": 0, "Size": 0}
"""Operators that take only the shape or the type of one input, and which: that input need not be constant."""

Array = NDArray[Any]


def is_foldable(node: ir.Node, types: Types) -> bool:
    """Whether `node` is of a folded operator, and depends on constants, static shapes and types alone."""
    if node.domain not in ONNX_DOMAINS or node.op_type not in FOLDED:
        return False
    for position, value in enumerate(node.inputs):
        if value is None or is_constant(value):
            continue
        if position != TYPE_ONLY.get(node.op_type) or value not in types:
            return False  # depends on the data
        if node.op_type != "CastLike" and static_sizes(types[value]) is None:
            return False
    return True


def evaluate(node: ir.Node, types: Types, opset: int) -> list[Array] | None:
    """The outputs of a foldable `node` that have a name; None where they cannot be computed here."""
    if opset < _SINCE.get(node.op_type, 0):
        return None
    made = [value for value in node.outputs if value.name]
    proto, feed = ir.to_proto(node), {}
    proto.domain = ""
    try:
        for position, value in enumerate(node.inputs):
            if value is not None:
                proto.input[position] = f"input{position}"
                feed[f"input{position}"] = _input(node, position, value, types)
        with np.errstate(all="ignore"):
            around = _around(proto, list(feed), max(opset, _ALSO_BEFORE.get(node.op_type, 0)))
            results = ReferenceEvaluator(around).run(None, feed)
    except Exception:  # noqa: BLE001 - whatever a graph makes the evaluator raise: the node stays as it is
        return None
    arrays = [np.asarray(result) for result in results]
    pairs = zip(arrays, made, strict=False)
    fits = len(arrays) == len(made) and all(_fits(array, types.get(value)) for array, value in pairs)
    return arrays if fits else None


def _input(node: ir.Node, position: int, value: ir.Value, types: Types) -> Array:
    """The value of an input; zeros that take no memory where only its shape or type matters.

    Raises:
        TypeError: it is of a type (text, less than 8 bits) of which numpy's arithmetic is not ONNX's.
    """
    if position == TYPE_ONLY.get(node.op_type):
        kind = type_of(value, types)
        assert kind is not None
        sizes = () if node.op_type == "CastLike" else static_sizes(kind)
        return np.broadcast_to(np.zeros((), ir.DataType(kind.tensor_type.elem_type).numpy()), sizes or ())
    assert value.const_value is not None
    array: Array = value.const_value.numpy()
    if array.dtype.kind not in "biuf" and node.op_type != "Cast":
        raise TypeError(f"{array.dtype}")
    return array


def _around(node: onnx.NodeProto, inputs: list[str], opset: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "constant",
        [helper.make_value_info(name, onnx.TypeProto()) for name in inputs],
        [helper.make_value_info(name, onnx.TypeProto()) for name in node.output if name],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _fits(array: Array, kind: onnx.TypeProto | None) -> bool:
    """Whether the evaluator made what inference said."""
    if kind is None or array.dtype.kind not in "biuf":
        return False
    sizes = static_sizes(kind)
    return array.dtype == ir.DataType(kind.tensor_type.elem_type).numpy() and sizes in (None, array.shape)
