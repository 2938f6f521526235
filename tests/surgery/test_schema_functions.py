"""Bodies of ONNX's function operators, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.schema_functions import body_of, is_defined
from surgery.splice import splice
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.one_operator import operator

X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(2, 3, 4)


def inlined(made: ir.Model, opset: int) -> int:
    """Put the body in the place of the one node; its opset."""
    body = body_of(made.graph[0], opset)
    assert body is not None
    nodes, outputs, version = body
    assert all(one.graph is None for one in nodes)
    splice(made.graph[0], nodes, outputs, "test")
    check(made)
    return version


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))))


def softmax(x: Array) -> Array:
    made: Array = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    return made


@pytest.mark.parametrize(
    ("op", "opset", "attributes", "numpy"),
    [
        ("Gelu", 20, {}, gelu),
        (
            "Gelu",
            20,
            {"approximate": "tanh"},
            lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        ),
        ("HardSwish", 14, {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Softmax", 13, {"axis": 1}, softmax),
        ("ThresholdedRelu", 10, {"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
        ("ThresholdedRelu", 10, {}, lambda x: np.where(x > 1, x, 0)),
    ],
)
def test_body_of_computes_the_operator_when_onnx_defines_it_by_others(
    op: str, opset: int, attributes: dict[str, Any], numpy: Callable[[Array], Array]
) -> None:
    made = operator(op, shape=X.shape, opset=max(opset, 18), **attributes)
    version = inlined(made, max(opset, 18))
    assert version <= max(opset, 18)
    assert op not in [one.op_type for one in made.graph]
    np.testing.assert_allclose(run(made, {"x": X})["y"], numpy(X.astype(np.float64)), rtol=1e-4, atol=1e-5)


def test_body_of_leaves_an_input_out_when_the_node_has_none_there() -> None:
    made = operator("Clip", "x - high", shape=X.shape, constants={"high": np.float32(1)}, opset=13)
    inlined(made, 13)
    np.testing.assert_array_equal(run(made, {"x": X})["y"], np.minimum(X, 1))


def test_body_of_makes_the_named_outputs_alone_when_others_are_left_out() -> None:
    scale = {"s": np.ones(4, np.float32)}
    made = operator("LayerNormalization", "x s", "y", shape=X.shape, constants=scale, opset=17, axis=-1)
    inlined(made, 17)
    wide = X.astype(np.float64)
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(made, {"x": X})["y"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op", "opset", "wanted"), [("Gelu", 20, True), ("Softmax", 13, True), ("Conv", 19, False)])
def test_is_defined_when_onnx_has_a_body_of_that_opset(op: str, opset: int, wanted: bool) -> None:
    assert is_defined(op, opset) is wanted


def test_body_of_is_none_when_onnx_defines_the_operator_by_no_other() -> None:
    assert body_of(operator("Tanh").graph[0], 17) is None
