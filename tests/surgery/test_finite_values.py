"""What is finite as far as a graph shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from surgery.finite_values import is_finite
from surgery.inferred import infer_types
from tests.surgery.norm_graphs import Steps

SHAPE = (5, 5)


def made_of(*ops: str, number: Any = None, **attributes: Any) -> Callable[[Steps], str]:
    """Operators in a row, the last with a constant `number` beside what it reads."""

    def make(steps: Steps) -> str:
        made = "x"
        for op in ops[:-1]:
            made = steps.add(op, made)
        beside = () if number is None else (steps.constant(number),)
        return steps.add(ops[-1], made, *beside, **attributes)

    return make


def chosen(number: float) -> Callable[[Steps], str]:
    """A choice between x and `number`."""
    return lambda steps: steps.add("Where", steps.add("Less", "x", steps.constant(0.0)), steps.constant(number), "x")


FINITE: dict[str, Callable[[Steps], str]] = {
    "an input": made_of("Neg"),
    "a product": made_of("MatMul", number=np.ones((5, 5))),
    "scaled": made_of("Div", number=8.0),
    "a sum": made_of("Add", number=np.ones(5)),
    "masked": chosen(-1e4),
    "a logarithm behind a layer that mixes it": made_of("Log", "MatMul", number=np.ones((5, 5))),
    "bounded": made_of("Exp", "Tanh"),
    "laid out": made_of("Transpose", perm=[1, 0]),
    "whole numbers": lambda steps: steps.add("Cast", steps.add("ArgMax", "x", keepdims=1), to=TensorProto.FLOAT),
}
OTHERS: dict[str, Callable[[Steps], str]] = {
    "a logarithm": made_of("Log"),
    "an exponential": made_of("Exp"),
    "a root, scaled": made_of("Sqrt", "Mul", number=2.0),
    "an inverse": made_of("Reciprocal"),
    "a fraction": lambda steps: steps.add("Div", steps.constant(1.0), "x"),
    "divided by zero": made_of("Div", number=[1.0, 1, 0, 1, 1]),
    "plus minus infinity": made_of("Add", number=[0.0, 0, 0, 0, -np.inf]),
    "times no number": made_of("Mul", number=float("nan")),
    "masked with minus infinity": chosen(-np.inf),
}


@pytest.mark.parametrize("kind", [*FINITE, *OTHERS])
def test_finite_is_what_layers_inputs_and_numbers_make_without_an_infinity(kind: str) -> None:
    steps = Steps()
    {**FINITE, **OTHERS}[kind](steps)
    made = steps.model({"x": SHAPE}, SHAPE)
    infer_types(made)
    assert is_finite(made.graph.outputs[0]) is (kind in FINITE)


def test_operator_of_another_domain_may_make_anything() -> None:
    steps = Steps()
    steps.add("Tanh", "x")
    made = steps.model({"x": SHAPE}, SHAPE)
    infer_types(made)
    made.graph[0].domain = "com.example"
    assert not is_finite(made.graph.outputs[0])
