"""Compositions element by element, against numpy's own operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.missing_kernels import ELEMENTWISE, SELU_ALPHA, SELU_GAMMA, given, number
from surgery.splice import Draft, splice
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.one_operator import operator

X = np.array([[-np.inf, -7.5, -2, -0.5, -0.0, 0.25, 0.5, 3, 7.25, np.inf]], np.float32)
SMALL = np.linspace(-4, 4, 33, dtype=np.float32)[None]
FINITE = X[:, 1:-1]
BOTH = np.array([[False, False, True, True], [False, True, False, True]])


def composed(made: ir.Model) -> ir.Model | None:
    """The one node of `made`, replaced by its composition; None where it has none."""
    node = made.graph[0]
    draft = Draft()
    value = ELEMENTWISE[node.op_type](node, draft, 17)
    if value is None:
        return None
    splice(node, draft.nodes, [value], "test")
    check(made)
    assert node.op_type not in [one.op_type for one in made.graph]
    return made


def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def shrink(bias: float, lambd: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


UNARY: list[tuple[str, Array, Callable[[Array], Array], Mapping[str, Any]]] = [
    ("Ceil", X, np.ceil, {}),
    ("Celu", SMALL, elu, {}),
    ("Celu", SMALL, lambda x: 0.5 * elu(x / 0.5), {"alpha": 0.5}),
    ("Cosh", SMALL, np.cosh, {}),
    ("Mish", SMALL, lambda x: x * np.tanh(np.log1p(np.exp(x))), {}),
    ("Selu", SMALL, lambda x: SELU_GAMMA * elu(x, SELU_ALPHA), {}),
    ("Selu", SMALL, lambda x: 3 * elu(x, 2), {"alpha": 2.0, "gamma": 3.0}),
    ("Shrink", SMALL, shrink(0, 0.5), {}),
    ("Shrink", SMALL, shrink(1.5, 0.25), {"bias": 1.5, "lambd": 0.25}),
    ("Sign", X, np.sign, {}),
    ("Sinh", SMALL, np.sinh, {}),
    ("Sinh", SMALL * np.float32(1e-4), np.sinh, {}),
    ("Softsign", FINITE, lambda x: x / (1 + np.abs(x)), {}),
    ("Tan", SMALL, np.tan, {}),
]


@pytest.mark.parametrize(("op", "x", "numpy", "attributes"), UNARY)
def test_elementwise_is_numpys_when_it_is_composed(
    op: str, x: Array, numpy: Callable[[Array], Array], attributes: Mapping[str, Any]
) -> None:
    opset = 18 if op == "Mish" else 17
    made = composed(operator(op, shape=x.shape, opset=opset, **attributes))
    assert made is not None
    np.testing.assert_allclose(run(made, {"x": x})["y"], numpy(x.astype(np.float64)), rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize(
    ("op", "numpy"),
    [("Min", lambda *x: np.min(x, axis=0)), ("Mean", lambda *x: np.mean(x, axis=0))],
)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_elementwise_is_numpys_when_there_are_several_operands(
    op: str, numpy: Callable[..., Array], count: int
) -> None:
    rng = np.random.default_rng(3)
    feed = {name: rng.standard_normal((2, 5)).astype(np.float32) for name in "xuv"[:count]}
    others = dict.fromkeys("uv"[: count - 1], (2, 5))
    made = composed(operator(op, " ".join(feed), shape=(2, 5), fed=others))
    assert made is not None
    np.testing.assert_allclose(run(made, feed)["y"], numpy(*feed.values()), rtol=1e-6)


@pytest.mark.parametrize(("op", "numpy"), [("Or", np.logical_or), ("Xor", np.logical_xor)])
def test_elementwise_is_numpys_when_it_is_of_truths(op: str, numpy: Callable[..., Array]) -> None:
    made = composed(operator(op, "x u", shape=(4,), dtype=TensorProto.BOOL, fed={"u": (4,)}))
    assert made is not None
    np.testing.assert_array_equal(run(made, {"x": BOTH[0], "u": BOTH[1]})["y"], numpy(*BOTH))


def test_is_nan_finds_nan_and_not_infinity() -> None:
    made = composed(operator("IsNaN", shape=(3,), made={"y": (1, TensorProto.BOOL)}))
    assert made is not None
    x = np.array([np.nan, np.inf, 1], np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], [True, False, False])


@pytest.mark.parametrize(
    ("k", "attributes", "numpy"),
    [
        (None, {}, np.triu),
        (None, {"upper": 0}, np.tril),
        (1, {}, lambda x: np.triu(x, 1)),
        (-2, {"upper": 0}, lambda x: np.tril(x, -2)),
        (9, {}, lambda x: np.triu(x, 9)),
    ],
)
def test_trilu_is_numpys_when_the_other_triangle_is_infinite(
    k: int | None, attributes: dict[str, Any], numpy: Callable[[Array], Array]
) -> None:
    constants = {} if k is None else {"k": np.array(k, np.int64)}
    made = composed(operator("Trilu", " ".join(["x", *constants]), shape=(2, 4, 5), constants=constants, **attributes))
    assert made is not None
    x = np.full((2, 4, 5), np.inf, np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(made, {"x": x})["y"], np.where(numpy(np.ones_like(x)) > 0, x, 0))


@pytest.mark.parametrize(
    "original",
    [
        operator("Celu", alpha=-1.0),
        operator("Trilu", shape=("a", 4)),
        operator("Trilu", shape=(4,)),
        operator("Trilu", "x k", shape=(4, 4), dtype=TensorProto.INT64, fed={"k": ()}),
        operator("Min", "x u", dtype=TensorProto.DOUBLE, fed={"u": (1,)}),
        operator("Sign", dtype=TensorProto.UINT8),
    ],
    ids=["alpha below 0", "open size", "rank 1", "diagonal computed", "double", "unsigned"],
)
def test_elementwise_is_left_when_its_composition_does_not_hold(original: ir.Model) -> None:
    assert composed(original) is None


def test_number_is_a_scalar_of_the_nodes_type() -> None:
    made = number(operator("Sign", dtype=TensorProto.INT64).graph[0], 3)
    assert made.const_value is not None
    assert (made.dtype, made.const_value.numpy().shape, int(made.const_value.numpy())) == (ir.DataType.INT64, (), 3)


def test_given_is_the_input_at_a_place() -> None:
    made = operator("Or", "x u", dtype=TensorProto.BOOL, fed={"u": (1,)})
    assert [given(made.graph[0], place).name for place in (0, 1)] == ["x", "u"]
