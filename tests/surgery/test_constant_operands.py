from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.constant_operands import may_have_operand, operand_of
from surgery.matching import Matched
from tests.surgery.layer_graphs import layers, node

MUL = (Matched("Mul"),)


def last(*arguments: str, **constants: Any) -> ir.Node:
    """Mul of `arguments`, behind a Tanh of x that states its shape."""
    made = layers(node("Tanh", "x", "h"), node("Mul", " ".join(arguments), "y"), **constants)
    made.graph[0].outputs[0].shape = ir.Shape([1, 6, 10])
    return made.graph[-1]


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (0.5, ()), ([3.0], ()), (np.full((1, 6, 10), 4.0), ()), (np.ones((1, 1)), ()),
        (np.arange(6.0).reshape(6, 1), (6, 1)), (np.repeat(np.arange(6.0).reshape(1, 6, 1), 10, axis=2), (1, 6, 1)),
        (np.tile(np.arange(10.0), (1, 6, 1)), (1, 1, 10)), (np.arange(60.0).reshape(1, 6, 10), (1, 6, 10)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1])
def test_operand_has_one_number_along_an_axis_when_it_does_not_vary(
    values: object, shape: tuple[int, ...], place: int
) -> None:
    mul = last(*(("h", "k") if place == 0 else ("k", "h")), k=values)
    operand = operand_of(mul, MUL)
    assert operand is not None
    assert (operand.value.name, operand.place, operand.values.shape) == ("h", place, shape)
    np.testing.assert_array_equal(
        np.broadcast_to(operand.values, (1, 6, 10)),
        np.broadcast_to(np.asarray(values, np.float32), (1, 6, 10)),
    )


@pytest.mark.parametrize(
    "values",
    [
        np.ones((2, 6, 10)), np.ones((1, 1, 6, 10)), np.ones((6,)), np.array(3), np.array([np.inf]),
        np.array([np.nan]), np.ones((1, 0, 1)),
    ],
    ids=["larger", "of a higher rank", "does not fit", "whole", "infinite", "no number", "none"],
)  # fmt: skip
def test_there_is_no_operand_when_the_constant_is_another(values: object) -> None:
    mul = last("h", "k", k=values)
    assert may_have_operand(mul, MUL)
    assert operand_of(mul, MUL) is None


def test_there_is_no_operand_when_none_or_both_are_constants() -> None:
    assert not may_have_operand(last("h", "x"), MUL)
    assert not may_have_operand(last("half", "three"), MUL)
    assert not may_have_operand(last("h", "half"), (Matched("Div"),))
    assert operand_of(last("h", "x"), MUL) is None


def test_there_is_no_operand_of_a_rank_when_the_shape_is_unknown() -> None:
    mul = last("h", "three")
    assert mul.inputs[0] is not None
    mul.inputs[0].shape = None
    assert operand_of(mul, MUL) is None
    scalar = last("h", "half")
    assert scalar.inputs[0] is not None
    scalar.inputs[0].shape = None
    assert operand_of(scalar, MUL) is not None
