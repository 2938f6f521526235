"""Every folded operator computes what onnxruntime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from surgery.constant_nodes import FOLDED
from surgery.fold_constants import fold_constants
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check

R = np.random.default_rng(3)
F = R.standard_normal((2, 3, 4)).astype(np.float32) * 3
P = np.abs(F) + np.float32(0.1)
N = R.integers(-9, 9, (2, 3, 4))
B = N > 0
HALF = F.astype(np.float16)
ROW = np.array([3, -1, 0, 2])
U8 = R.integers(0, 256, (3, 4)).astype(np.uint8)
INF = np.array([1.0, -np.inf, np.inf, np.nan], np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def case(op: str, *inputs: Any, opset: int = 17, outputs: int = 1, **attributes: Any) -> Any:
    shown = ", ".join([*(f"{one.dtype}{list(one.shape)}" for one in inputs if one is not None), *map(str, attributes)])
    return pytest.param(op, inputs, opset, outputs, attributes, id=f"{op}-{opset}-{shown}")


_FLOAT_UNARY = (
    "Abs",
    "Ceil",
    "Cos",
    "Erf",
    "Exp",
    "Floor",
    "Neg",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Tan",
    "Tanh",
)
_BINARY = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Sub", "Sum", "Pow")
_COMPARE = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_REDUCE = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
_LOGIC = ("And", "Or", "Xor")
_BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
NONZERO = np.where(N == 0, 5, N)

CASES = [
    *(case(op, F) for op in _FLOAT_UNARY),
    *(case(op, P) for op in ("Log", "Sqrt", "Reciprocal")),
    *(case(op, N) for op in ("Abs", "Neg", "Sign")),
    *(case(op, HALF) for op in ("Abs", "Neg", "Floor")),
    case("Round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)),
    case("IsNaN", INF),
    case("IsInf", INF),
    case("IsInf", INF, detect_negative=0),
    case("Not", B),
    case("BitwiseNot", N, opset=18),
    *(case(op, P, P[:1, :, 1:2]) for op in _BINARY),
    case("Div", N, NONZERO),
    case("Div", N, np.full((1,), -2)),
    case("Mod", N, NONZERO),
    case("Mod", N, NONZERO, fmod=1),
    case("Mod", F, P, fmod=1),
    case("Pow", N, ints(2)),
    case("Pow", P, ints(2)),
    *(case(op, N, ints(1, 0, 1, 2)) for op in _COMPARE),
    *(case(op, F, F[:1]) for op in _COMPARE),
    *(case(op, B, B[:, :1]) for op in _LOGIC),
    *(case(op, N, ints(1, 2, 3, 4), opset=18) for op in _BITS),
    case("BitShift", U8, np.full((1,), 2, np.uint8), direction="LEFT"),
    case("BitShift", U8, np.full((1,), 2, np.uint8), direction="RIGHT"),
    case("LeakyRelu", F),
    case("LeakyRelu", F, alpha=0.3),
    case("Clip", F, np.float32(-1), np.float32(1.5)),
    case("Clip", F, opset=9, min=-1.0, max=2.0),
    case("TopK", F, opset=9, outputs=2, k=2, axis=-1),
    case("Softmax", F, opset=13),
    case("Clip", F, None, np.float32(1.5)),
    case("Clip", F, np.float32(-1)),
    case("Softmax", F),
    case("Softmax", F, axis=1),
    case("ArgMax", F, axis=-1, keepdims=0),
    case("ArgMax", np.array([1.0, 3, 3], np.float32), axis=0, select_last_index=1),
    case("ArgMin", F),
    case("CumSum", F, np.array(1, np.int32)),
    case("CumSum", F, np.array(-1), exclusive=1, reverse=1),
    *(case(op, P, axes=[1]) for op in _REDUCE),
    *(case(op, P, ints(-1), opset=18, keepdims=0) for op in _REDUCE),
    *(case(op, P) for op in _REDUCE),
    case("ReduceSum", N, ints(0, 2)),
    case("ReduceSum", F, keepdims=0),
    case("ReduceSum", F, opset=11, axes=[0]),
    case("ReduceSum", F, ints(), noop_with_empty_axes=1),
    case("ReduceMax", N, axes=[0], keepdims=0),
    case("MatMul", F, F.transpose(0, 2, 1)),
    case("Gemm", F[0], F[1], np.ones(3, np.float32), transB=1, alpha=0.5, beta=2.0),
    case("Cast", F, to=TensorProto.INT64),
    case("Cast", N, to=TensorProto.BOOL),
    case("Cast", B, to=TensorProto.FLOAT),
    case("Cast", F, to=TensorProto.FLOAT16),
    case("Cast", HALF, to=TensorProto.FLOAT),
    case("Cast", F, to=TensorProto.DOUBLE),
    case("Cast", N, to=TensorProto.INT32),
    case("CastLike", N, F),
    case("QuantizeLinear", F, np.float32(0.05), np.uint8(100)),
    case("QuantizeLinear", F, np.array([0.05, 0.1, 0.2], np.float32), np.zeros(3, np.int8), axis=1),
    case("DequantizeLinear", U8, np.float32(0.05), np.uint8(100)),
    case("DequantizeLinear", U8, np.array([0.05, 0.1, 0.2], np.float32), np.array([1, 2, 3], np.uint8), axis=0),
    case("DequantizeLinear", U8.astype(np.int8), np.array([0.05, 0.1, 0.2, 0.3], np.float32)),
    case("Shape", F),
    case("Shape", F, start=-2, end=3),
    case("Size", F),
    case("ConstantOfShape", ints(2, 3)),
    case("ConstantOfShape", ints(2, 3), value=numpy_helper.from_array(np.array([-7]))),
    case("ConstantOfShape", ints(2), value=numpy_helper.from_array(np.array([True]))),
    case("ConstantOfShape", ints()),
    case("EyeLike", F[0], k=1),
    case("EyeLike", N[0], dtype=TensorProto.FLOAT, k=-1),
    case("Range", np.array(2), np.array(11), np.array(3)),
    case("Range", np.array(11), np.array(2), np.array(-2)),
    case("Range", np.float32(0), np.float32(1), np.float32(0.1)),
    case("Range", np.array(3, np.int32), np.array(3, np.int32), np.array(1, np.int32)),
    case("Expand", F[:, :1], ints(2, 3, 4)),
    case("Expand", F[:, :1], ints(5, 1, 3, 1)),
    case("Tile", F, ints(2, 1, 3)),
    case("Concat", N, N, axis=-1),
    case("Concat", F, F[:1], axis=0),
    case("Split", F, ints(1, 2), outputs=2, axis=1),
    case("Split", F, outputs=2, axis=-1),
    case("Split", F, outputs=3, axis=1, num_outputs=3, opset=18),
    case("Split", F, outputs=2, axis=2, num_outputs=2, opset=18),
    case("Split", np.arange(5.0, dtype=np.float32), outputs=2, num_outputs=2, opset=18),
    case("Split", F, outputs=2, axis=2, split=[1, 3], opset=11),
    case("Reshape", F, ints(0, -1)),
    case("Reshape", F, ints(4, 6)),
    case("Reshape", np.zeros((0, 3), np.float32), ints(3, 0), allowzero=1),
    case("Flatten", F),
    case("Flatten", F, axis=-1),
    case("Squeeze", F[:, :1], ints(1)),
    case("Squeeze", F[:1, :1]),
    case("Squeeze", F[:, :1], opset=11, axes=[1]),
    case("Unsqueeze", F, ints(0, -1)),
    case("Unsqueeze", F, opset=11, axes=[1, 3]),
    case("Transpose", F),
    case("Transpose", F, perm=[2, 0, 1]),
    case("Slice", F, ints(0), ints(2), ints(1)),
    case("Slice", ROW, ints(-1), ints(-(2**63) + 1), ints(0), ints(-1)),
    case("Slice", ROW, ints(-1), ints(np.iinfo(np.int64).min), ints(0), ints(-1)),
    case("Slice", F, ints(0, 3), ints(2**62, -100), ints(1, -1), ints(2, -2)),
    case("Slice", F, ints(1), ints(2)),
    case("Slice", F, opset=9, axes=[2], starts=[1], ends=[2**31]),
    case("Gather", F, ints(-1, 0), axis=1),
    case("Gather", ROW, np.array(2)),
    case("Gather", F, np.array([[0, 1], [1, 0]], np.int32)),
    case("GatherElements", F, np.abs(N) % 2, axis=0),
    case("GatherElements", F, -1 - np.abs(N) % 3, axis=1),
    case("GatherND", F, ints(0, 1, 1, 2).reshape(2, 2)),
    case("GatherND", F, ints(1, 0).reshape(2, 1), batch_dims=1),
    case("ScatterElements", F, np.zeros((2, 1, 4), np.int64), F[:, :1] * 2, axis=1),
    case("ScatterElements", F, np.zeros((2, 2, 4), np.int64) + ints(0, -1).reshape(1, 2, 1), F[:, :2], axis=1),
    case("ScatterElements", F, np.zeros((2, 2, 4), np.int64), F[:, :2], axis=1, reduction="add", opset=18),
    case("ScatterND", F, ints(1, 0).reshape(2, 1), F * 2),
    case("ScatterND", F, ints(0, 0).reshape(2, 1), F * 2, reduction="add", opset=18),
    case("Compress", F, np.array([True, False, True]), axis=1),
    case("Compress", F, np.array([True, False, True])),
    case("NonZero", N),
    case("NonZero", ROW),
    case("OneHot", ints(1, -1, 5), np.array(4), np.array([0.5, 2], np.float32)),
    case("OneHot", ints(1, 0), np.array(3), ints(0, 1), axis=0),
    case("TopK", F, ints(2), outputs=2),
    case("TopK", F, ints(2), outputs=2, axis=1, largest=0),
    case("Trilu", F),
    case("Trilu", F, np.array(-1), upper=0),
    case("Trilu", B, np.array(1)),
    case("Where", B, F, np.float32(0)),
    case("Where", B[:, :1], N, np.array(-1)),
    case("Pad", F, ints(0, 1, 0, 0, 0, 2)),
    case("Pad", F, ints(0, 1, 0, 0, 0, 2), np.float32(3)),
    case("Pad", F, ints(0, 1, 1, 0, 1, 2), mode="reflect"),
    case("Pad", F, ints(0, 1, 1, 0, 1, 2), mode="edge"),
    case("Pad", F, ints(1, 2), None, ints(-1), opset=18),
    case("Pad", F, opset=10, pads=[0, 1, 0, 0, 0, 2], value=1.5),
    case("ReverseSequence", F[0].T.copy(), ints(2, 3, 4), time_axis=0, batch_axis=1),
    case("DepthToSpace", R.standard_normal((1, 8, 2, 3)).astype(np.float32), blocksize=2),
    case("DepthToSpace", R.standard_normal((1, 8, 2, 3)).astype(np.float32), blocksize=2, mode="CRD"),
    case("SpaceToDepth", R.standard_normal((1, 2, 4, 6)).astype(np.float32), blocksize=2),
]  # fmt: skip


def graph_of(op: str, inputs: Any, opset: int, outputs: int, attributes: Any) -> Any:
    """The node, all inputs constant, and outputs of the types that ONNX infers."""
    names = ["" if one is None else f"c{i}" for i, one in enumerate(inputs)]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, "at", **attributes)
    weights = [numpy_helper.from_array(one, name) for one, name in zip(inputs, names, strict=True) if one is not None]
    infos = [helper.make_value_info(name, onnx.TypeProto()) for name in made]
    graph = helper.make_graph([node], "g", [], infos, weights)
    opsets = [helper.make_opsetid("", opset)]
    inferred = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8), data_prop=True
    )
    return model([node], [tensor("x", [1])], list(inferred.graph.output), weights, opset=opset)


@pytest.mark.parametrize(("op", "inputs", "opset", "outputs", "attributes"), CASES)
def test_fold_constants_computes_what_onnxruntime_does(
    op: str, inputs: Any, opset: int, outputs: int, attributes: Any
) -> None:
    original = graph_of(op, inputs, opset, outputs, attributes)
    done = fold_constants().rewrite(original)
    assert done.hits
    assert [node.op_type for node in done.model.graph] == ["Identity"] * outputs
    check(done.model)
    feed = {"x": np.zeros(1, np.float32)}
    try:
        wanted = run(original, feed)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        pytest.skip("no kernel in onnxruntime")
    got = run(done.model, feed)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        np.testing.assert_allclose(got[name], array, rtol=2e-6, atol=1e-6)


def test_folded_operators_are_each_held_against_onnxruntime() -> None:
    assert {param.values[0] for param in CASES} == set(FOLDED)
