"""The mask that a condition is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.choice_masks import ChoiceMask, choice_mask, is_truth
from surgery.graph import input_of
from surgery.inferred import infer_types
from tests.surgery.norm_graphs import Steps

SHAPE = (2, 5)


def values_of(make: Callable[[Steps], str]) -> tuple[ir.Value, dict[str, ir.Value]]:
    """What `make` adds to a graph on `x`, and every value of the graph by name."""
    steps = Steps()
    steps.add("Cast", make(steps), to=TensorProto.FLOAT)
    made = steps.model({"x": SHAPE}, SHAPE)
    infer_types(made)
    named = {value.name: value for node in made.graph for value in (*node.inputs, *node.outputs) if value is not None}
    return input_of(next(node for node in made.graph if node.outputs[0].is_graph_output())), {
        name: value for name, value in named.items() if name is not None
    }


def positive(steps: Steps) -> str:
    """Booleans, t0."""
    return steps.add("Greater", "x", "x")


def mask(steps: Steps, dtype: int = TensorProto.FLOAT) -> str:
    """Zeros and ones, t1."""
    return steps.add("Cast", positive(steps), to=dtype)


ANSWERS = [
    ("Equal", 0.0, False),
    ("Equal", 1.0, True),
    ("Greater", 0.0, True),
    ("Greater", 0.5, True),
    ("GreaterOrEqual", 1.0, True),
    ("Less", 0.5, False),
    ("Less", 1.0, False),
    ("LessOrEqual", 0.0, False),
]
"""Comparisons of a mask with a number, and whether they are true for its ones."""


@pytest.mark.parametrize("negated", [0, 1, 2])
@pytest.mark.parametrize(("op", "number", "of_ones"), ANSWERS)
def test_mask_is_what_a_comparison_tells_apart(op: str, number: float, of_ones: bool, negated: int) -> None:
    def make(steps: Steps) -> str:
        made = steps.add(op, mask(steps), steps.constant(number))
        for _ in range(negated):
            made = steps.add("Not", made)
        return made

    condition, values = values_of(make)
    assert choice_mask(condition) == ChoiceMask(values["t1"], of_ones is (negated != 1))


@pytest.mark.parametrize(("op", "of_ones"), [("Less", True), ("Greater", False)])
def test_mask_on_the_right_is_told_apart_the_other_way(op: str, of_ones: bool) -> None:
    condition, values = values_of(lambda steps: steps.add(op, steps.constant(0.5), mask(steps)))
    assert choice_mask(condition) == ChoiceMask(values["t1"], of_ones)


@pytest.mark.parametrize(
    ("op", "number"), [("Equal", 2.0), ("Greater", 1.0), ("Less", 0.0), ("GreaterOrEqual", 0.0), ("LessOrEqual", 1.0)]
)
def test_comparison_that_tells_no_ones_from_zeros_is_the_mask_itself(op: str, number: float) -> None:
    condition, _ = values_of(lambda steps: steps.add(op, mask(steps), steps.constant(number)))
    assert choice_mask(condition) == ChoiceMask(condition, True)


@pytest.mark.parametrize("number", [float("nan"), [0.0, 0.0, 0.0, 0.0, 0.0]])
def test_comparison_with_no_number_is_the_mask_itself(number: Any) -> None:
    condition, _ = values_of(lambda steps: steps.add("Equal", mask(steps), steps.constant(number)))
    assert choice_mask(condition) == ChoiceMask(condition, True)


def test_expansion_and_casts_of_a_mask_are_looked_through() -> None:
    def make(steps: Steps) -> str:
        wide = steps.add("Expand", mask(steps, TensorProto.INT64), steps.constant([3, 2, 5], np.int64))
        return steps.add("Cast", wide, to=TensorProto.BOOL)

    condition, values = values_of(make)
    # The cast to whole numbers is of booleans, which are the mask.
    assert choice_mask(condition) == ChoiceMask(values["t0"], True)


def test_cast_of_any_number_is_the_mask_itself() -> None:
    condition, _ = values_of(lambda steps: steps.add("Cast", "x", to=TensorProto.BOOL))
    assert choice_mask(condition) == ChoiceMask(condition, True)


TRUTHS: dict[str, Callable[[Steps], str]] = {
    "a cast of booleans": mask,
    "a product of masks": lambda steps: steps.add("Mul", mask(steps), steps.constant([0.0, 1, 1, 0, 1])),
    "a part of a mask": lambda steps: steps.add("Transpose", mask(steps), perm=[1, 0]),
    "booleans": positive,
}
OTHERS: dict[str, Callable[[Steps], str]] = {
    "an input": lambda steps: steps.add("Identity", "x"),
    "a sum of masks": lambda steps: steps.add("Add", mask(steps), mask(steps)),
    "a scaled mask": lambda steps: steps.add("Mul", mask(steps), steps.constant(2.0)),
    "a mask within other bounds": lambda steps: steps.add("Clip", mask(steps), steps.constant(0.5)),
    "a product with an input": lambda steps: steps.add("Mul", mask(steps), "x"),
}


@pytest.mark.parametrize("kind", [*TRUTHS, *OTHERS])
def test_truths_are_what_is_made_of_booleans(kind: str) -> None:
    value, _ = values_of({**TRUTHS, **OTHERS}[kind])
    assert is_truth(value) is (kind in TRUTHS)


def test_operator_of_another_domain_is_no_comparison() -> None:
    condition, _ = values_of(lambda steps: steps.add("Equal", mask(steps), steps.constant(0.0)))
    node = condition.producer()
    assert node is not None
    node.domain = "com.example"
    assert choice_mask(condition) == ChoiceMask(condition, True)
