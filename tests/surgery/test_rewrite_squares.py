"""Squares as products, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from surgery.rewrite_squares import rewrite_squares
from tests.onnx_runs import run
from tests.surgery.norm_graphs import Steps
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operators

PASS = rewrite_squares()


def power(
    exponent: Any = 2.0,
    shape: Sequence[int | str] = (1, 4, 6),
    kind: Any = np.float32,
    opset: int = 15,
    dtype: int = TensorProto.FLOAT,
) -> ir.Model:
    steps = Steps(opset)
    steps.add("Pow", "x", steps.constant(exponent, kind))
    return steps.model({"x": shape}, [f"y{axis}" for axis in range(max(len(shape), np.ndim(exponent)))], dtype)


@pytest.mark.parametrize("opset", [7, 12, 13, 19])
@pytest.mark.parametrize("exponent", [2.0, [2.0], [[[2.0]]]])
def test_square_is_a_product(exponent: Any, opset: int) -> None:
    original = power(exponent, opset=opset)
    made = equal_after(PASS, original)
    assert operators(made) == ["Mul"]
    assert not made.graph.initializers
    feed = feed_of(original)
    np.testing.assert_array_equal(run(made, feed)["y"], feed["x"] * feed["x"])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_square_is_a_product_in_every_shape(shape: list[int]) -> None:
    equal_after(PASS, power(shape=shape))


def test_whole_exponent_and_open_steps_are_no_hindrance() -> None:
    equal_after(PASS, power(2, kind=np.int64))
    done = PASS.rewrite(power(shape=("n", 4, "t")))
    assert (done.hits, operators(done.model)) == (1, ["Mul"])


def test_exponent_that_another_reads_stays() -> None:
    steps = Steps()
    two = steps.constant(2.0)
    steps.add("Add", steps.add("Pow", "x", two), two)
    made = equal_after(PASS, steps.model({"x": (1, 4)}, (1, 4)))
    assert operators(made) == ["Mul", "Add"]


def _computed() -> ir.Model:
    steps = Steps()
    steps.add("Pow", "x", "e")
    return steps.model({"x": (1, 4), "e": (1, 4)}, (1, 4))


def _other_domain() -> ir.Model:
    made = power()
    made.graph[0].domain = "com.example"
    return made


@pytest.mark.parametrize(
    "original",
    [
        power(3.0),
        power([2.0, 2.0, 2.0, 2.0, 2.0, 3.0]),
        power([[[[2.0]]]]),
        power(2.0, kind=np.float64, dtype=TensorProto.DOUBLE),
        _computed(),
        _other_domain(),
    ],
    ids=["cube", "several", "more axes", "double", "computed", "another domain"],
)
def test_graph_is_left_alone_when_it_is_no_square(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_pass_runs_by_itself_nowhere() -> None:
    assert PASS.declaration.pays_on == frozenset()
