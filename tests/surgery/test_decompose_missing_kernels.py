"""Operators without a kernel on the board, composed of ones that have one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from gates.operators import REFUSED
from surgery.declaration import EXACT_PARITY_DB
from surgery.decompose_missing_kernels import BUILDERS, decompose_missing_kernels
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised

SHAPE = (2, 4, 6, 8)
SCALAR = constant("k", 0.3)


def noise(shape: Sequence[int], kind: int = TensorProto.FLOAT, name: str = "x") -> Array:
    """What is fed: normal numbers, whole ones from -3 to 3, or coin flips."""
    rng = np.random.default_rng([ord(letter) for letter in name])
    if kind == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if kind == TensorProto.FLOAT:
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(-3, 4, shape).astype(helper.tensor_dtype_to_np_dtype(kind))


def one(
    op: str,
    *weights: onnx.TensorProto,
    shape: Sequence[int] = SHAPE,
    kind: int = TensorProto.FLOAT,
    made: int | None = None,
    inputs: Sequence[str] = ("x",),
    opset: int = 17,
    out: Sequence[int] | None = None,
    **attributes: Any,
) -> ir.Model:
    """The node `n` of `op` on the inputs and `weights`."""
    node = helper.make_node(op, [*inputs, *(weight.name for weight in weights)], ["y"], "n", **attributes)
    result = tensor("y", shape if out is None else out, kind if made is None else made)
    return model([node], [tensor(name, shape, kind) for name in inputs], [result], weights, opset=opset)


def axes(*values: int) -> onnx.TensorProto:
    return constant("a", values, np.int64)


def group_factors(groups: int) -> list[onnx.TensorProto]:
    return [constant("s", np.linspace(0.5, 2, groups)), constant("b", np.linspace(-1, 1, groups))]


BOOL, INT32, INT64 = TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64

COMPOSED = [
    one("Min", SCALAR),
    one("Min", inputs=["x"]),
    one("Min", inputs=["x", "z", "u"]),
    one("Min", constant("k", 1, np.int64), kind=INT64),
    one("Min", inputs=["x", "z"], kind=INT32),
    one("Mean", inputs=["x"]),
    one("Mean", inputs=["x", "z", "u"]),
    one("Mean", constant("k", np.ones((4, 1, 1)))),
    one("Softsign"),
    one("Selu"),
    one("Selu", alpha=1.5, gamma=0.7),
    one("Celu"),
    one("Celu", alpha=0.3),
    one("Mish", opset=18),
    one("Shrink"),
    one("Shrink", lambd=0.7, bias=0.7),
    one("Shrink", lambd=0.2, bias=-0.4),
    one("Sign"),
    one("Sign", kind=INT64),
    one("Sign", kind=INT32),
    one("Ceil"),
    one("Cosh"),
    one("Sinh"),
    one("Tan"),
    one("IsNaN", made=BOOL),
    one("Or", inputs=["x", "z"], kind=BOOL),
    one("Xor", inputs=["x", "z"], kind=BOOL),
    one("Or", constant("k", [True] * 4 + [False] * 4, np.bool_), kind=BOOL),
    one("CastLike", constant("k", 1, np.int64), made=INT64),
    one("CastLike", SCALAR, kind=INT32, made=TensorProto.FLOAT),
    one("Trilu"),
    one("Trilu", upper=0),
    one("Trilu", constant("k", 2, np.int64), upper=1),
    one("Trilu", constant("k", -3, np.int64), upper=1),
    one("Trilu", constant("k", 1, np.int64), upper=0, shape=(5, 3)),
    one("Trilu", constant("k", -9, np.int64), upper=0, shape=(5, 3)),
    one("Trilu", kind=INT64),
    one("Trilu", kind=BOOL, shape=(4, 4)),
    one("ReduceL1", axes=[1], out=(2, 1, 6, 8)),
    one("ReduceL1", axes=[-1, 1], keepdims=0, out=(2, 6)),
    one("ReduceL1", out=(1, 1, 1, 1)),
    one("ReduceL1", axes(1, -1), opset=18, keepdims=0, out=(2, 6)),
    one("ReduceSumSquare", axes=[2], out=(2, 4, 1, 8)),
    one("ReduceSumSquare", axes(-2), opset=19, out=(2, 4, 1, 8)),
    one("ReduceLogSumExp", axes=[1], out=(2, 1, 6, 8)),
    one("ReduceLogSumExp", axes=[3], keepdims=0, out=(2, 4, 6)),
    one("ReduceLogSumExp", axes(0, 2), opset=18, out=(1, 4, 1, 8)),
    one("ReduceLogSumExp", axes(0, 2), opset=18, keepdims=0, out=(4, 8)),
    one("MeanVarianceNormalization"),
    one("MeanVarianceNormalization", axes=[2, 3]),
    one("MeanVarianceNormalization", axes=[-1], opset=18),
    one("LpPool", kernel_shape=[2, 2], strides=[2, 2], out=(2, 4, 3, 4)),
    one("LpPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], p=1),
    one("LpPool", kernel_shape=[3, 2], p=3, out=(2, 4, 4, 7)),
    one("LpPool", kernel_shape=[3], pads=[2, 0], shape=(1, 4, 9)),
    one("LpPool", kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2], out=(2, 4, 3, 4)),
    one("LpPool", kernel_shape=[3, 3], auto_pad="VALID", opset=18, dilations=[1, 1], ceil_mode=0, out=(2, 4, 4, 6)),
    one("GlobalLpPool", out=(2, 4, 1, 1)),
    one("GlobalLpPool", p=1, out=(2, 4, 1, 1)),
    one("GlobalLpPool", p=3, shape=(1, 4, 9), out=(1, 4, 1)),
    one("GroupNormalization", *group_factors(2), num_groups=2, opset=18),
    one("GroupNormalization", *group_factors(4), num_groups=4, epsilon=0.1, opset=19, shape=(1, 4, 9)),
    one("GroupNormalization", *group_factors(1), num_groups=1, opset=18, shape=(2, 4, 3)),
]


@pytest.mark.parametrize("original", COMPOSED, ids=lambda made: made.graph[0].op_type)
def test_decompose_missing_kernels_computes_the_same_when_it_composes(original: ir.Model) -> None:
    before = serialised(original)
    done = decompose_missing_kernels().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    proto = ir.to_proto(original)
    kinds = {value.name: value.type.tensor_type for value in proto.graph.input}
    feed = {n: noise([size.dim_value for size in kind.shape.dim], kind.elem_type, n) for n, kind in kinds.items()}
    wanted, made = run(original, feed)["y"], run(done.model, feed)["y"]
    assert made.dtype == wanted.dtype
    assert snr_db(wanted, made) >= EXACT_PARITY_DB
    assert not [node.op_type for node in done.model.graph if node.op_type in REFUSED]
    assert all("decompose_missing_kernels" in (node.name or "") for node in done.model.graph)


def test_composed_covers_every_builder() -> None:
    assert {made.graph[0].op_type for made in COMPOSED} | {"ReduceLogSum"} == set(BUILDERS)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_decompose_missing_kernels_computes_the_same_when_a_sum_is_positive(keepdims: int) -> None:
    original = one("ReduceLogSum", axes=[1], keepdims=keepdims, out=(2, 1, 6, 8) if keepdims else (2, 6, 8))
    done = decompose_missing_kernels().rewrite(original)
    feed = {"x": np.exp(noise(SHAPE))}
    assert done.hits == 1
    assert snr_db(run(original, feed)["y"], run(done.model, feed)["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize("upper", [0, 1])
def test_decompose_missing_kernels_keeps_zeros_when_a_triangle_cuts_infinities(upper: int) -> None:
    original = one("Trilu", upper=upper, shape=(3, 3))
    feed = {"x": np.full((3, 3), -np.inf, np.float32)}
    done = decompose_missing_kernels().rewrite(original)
    assert np.array_equal(run(original, feed)["y"], run(done.model, feed)["y"])


def test_decompose_missing_kernels_does_not_overflow_when_exponents_are_large() -> None:
    original = one("ReduceLogSumExp", axes=[1], shape=(1, 4), out=(1, 1))
    feed = {"x": np.array([[1000.0, 999.0, -1000.0, 998.0]], np.float32)}
    done = decompose_missing_kernels().rewrite(original)
    assert np.allclose(run(done.model, feed)["y"], 1000.4076, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-4, 1.0, 8.0])
def test_decompose_missing_kernels_keeps_the_hyperbolic_sine_accurate_when_it_is_small(size: float) -> None:
    x = np.linspace(-size, size, 101, dtype=np.float32).reshape(1, 101)
    original = one("Sinh", shape=x.shape)
    done = decompose_missing_kernels().rewrite(original)
    assert snr_db(np.sinh(x.astype(np.float64)), run(done.model, {"x": x})["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize("op", ["Ceil", "Sign"])
def test_decompose_missing_kernels_is_right_when_values_are_whole_or_zero(op: str) -> None:
    x = np.array([[-2, -0.5, -0.0, 0, 0.5, 1, 1e-30, -1e-30]], np.float32)
    original = one(op, shape=x.shape)
    done = decompose_missing_kernels().rewrite(original)
    assert np.array_equal(run(original, {"x": x})["y"], run(done.model, {"x": x})["y"])


def test_decompose_missing_kernels_tells_nans_when_there_are_some() -> None:
    x = np.array([[np.nan, 1.0, np.inf, -np.inf]], np.float32)
    done = decompose_missing_kernels().rewrite(one("IsNaN", shape=x.shape, made=BOOL))
    assert run(done.model, {"x": x})["y"].tolist() == [[True, False, False, False]]


def test_decompose_missing_kernels_serves_every_reader_when_a_value_is_read_twice_and_is_an_output() -> None:
    nodes = [
        helper.make_node("Softsign", ["x"], ["s"], "soft"),
        helper.make_node("Mish", ["s"], ["m"], "mish"),
        helper.make_node("Min", ["s", "m"], ["y"], "least"),
    ]
    original = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4]), tensor("s", [1, 4])], opset=18)
    done = decompose_missing_kernels().rewrite(original)
    assert done.hits == 3
    feed = {"x": noise((1, 4))}
    wanted, made = run(original, feed), run(done.model, feed)
    assert list(made) == ["y", "s"]
    assert all(snr_db(wanted[name], made[name]) >= EXACT_PARITY_DB for name in made)


def of_constants() -> ir.Model:
    """A triangle of ones, which the toolkit folds."""
    nodes = [helper.make_node("Trilu", ["k"], ["t"], "n"), helper.make_node("Mul", ["x", "t"], ["y"], "scale")]
    weights = [constant("k", np.ones((4, 4)))]
    return model(nodes, [tensor("x", [4, 4])], [tensor("y", [4, 4])], weights)


LEFT = [
    chain("Relu", "Tanh", "Atan"),
    chain("Acos"),
    of_constants(),
    one("Celu", alpha=-1.0),
    one("LpPool", kernel_shape=[2, 2], dilations=[2, 1], opset=18, out=(2, 4, 4, 7)),
    one("LpPool", kernel_shape=[4, 4], ceil_mode=1, opset=18, strides=[3, 3], out=(2, 4, 2, 3)),
    one("Min", constant("k", 1, np.uint8), kind=TensorProto.UINT8),
    one("ReduceL1", opset=18, noop_with_empty_axes=1),
    model([helper.make_node("Trilu", ["x"], ["y"], "n")], [tensor("x", ["n", 4])], [tensor("y", ["n", 4])]),
    model([helper.make_node("Min", ["x"], ["y"], "n", domain="com.example")], [tensor("x", [4])], [tensor("y", [4])]),
]


@pytest.mark.parametrize("original", LEFT, ids=lambda made: made.graph[-1].op_type)
def test_decompose_missing_kernels_returns_the_model_itself_when_no_composition_holds(original: ir.Model) -> None:
    done = decompose_missing_kernels().rewrite(original)
    assert done.model is original
    assert (done.hits, done.refused) == (0, ())
