"""Divisions by constants as products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from surgery.rewrite_constant_divisions import rewrite_constant_divisions
from tests.onnx_runs import run
from tests.surgery.norm_graphs import Steps
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operators

PASS = rewrite_constant_divisions()
RNG = np.random.default_rng(3)


def division(
    by: Any,
    shape: Sequence[int | str] = (1, 4, 6),
    first: bool = True,
    opset: int = 15,
    dtype: int = TensorProto.FLOAT,
    kind: Any = np.float32,
) -> ir.Model:
    steps = Steps(opset)
    divisor = steps.constant(by, kind)
    steps.add("Div", *(("x", divisor) if first else (divisor, "x")))
    return steps.model({"x": shape}, [f"y{axis}" for axis in range(max(len(shape), np.ndim(by)))], dtype)


@pytest.mark.parametrize("opset", [7, 13, 19])
@pytest.mark.parametrize("sizes", [(), (1,), (6,), (4, 1), (1, 4, 1), (1, 4, 6)])
def test_division_is_a_product_with_the_inverse(sizes: tuple[int, ...], opset: int) -> None:
    by = RNG.uniform(0.1, 9.0, sizes) * RNG.choice([-1, 1], sizes)
    original = division(by, opset=opset)
    made = equal_after(PASS, original)
    assert operators(made) == ["Mul"]
    assert len(made.graph.initializers) == 1
    feed = feed_of(original)
    np.testing.assert_allclose(run(made, feed)["y"], feed["x"] / by, rtol=1e-6)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.floats(1e-4, 1e4))
@settings(max_examples=20, deadline=None)
def test_division_is_a_product_in_every_shape(shape: list[int], by: float) -> None:
    equal_after(PASS, division(by, shape))


def test_one_number_divides_open_steps() -> None:
    done = PASS.rewrite(division(3.0, ("n", 4, "t")))
    assert (done.hits, operators(done.model)) == (1, ["Mul"])


def test_divisor_that_another_reads_stays() -> None:
    steps = Steps()
    three = steps.constant(3.0)
    steps.add("Add", steps.add("Div", "x", three), three)
    made = equal_after(PASS, steps.model({"x": (1, 4)}, (1, 4)))
    assert len(made.graph.initializers) == 2


def _computed() -> ir.Model:
    steps = Steps()
    steps.add("Div", "x", "d")
    return steps.model({"x": (1, 4), "d": (1, 4)}, (1, 4))


def _other_domain() -> ir.Model:
    made = division(3.0)
    made.graph[0].domain = "com.example"
    return made


@pytest.mark.parametrize(
    "original",
    [
        division(3.0, first=False),
        division([1.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
        division(1e-6),
        division(1e6),
        division(np.ones((2, 4, 6))),
        division(np.ones((1, 1, 1, 1))),
        division(np.ones(6), ("n", 4, "t")),
        division(3, dtype=TensorProto.INT32, kind=np.int32),
        division(3.0, dtype=TensorProto.DOUBLE, kind=np.float64),
        _computed(),
        _other_domain(),
    ],
    ids=[
        "constant divided", "zero", "inverse too large", "too small", "larger", "more axes", "open", "whole", "double",
        "computed", "another domain",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_it_is_no_such_division(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_pass_runs_by_itself_nowhere() -> None:
    assert PASS.declaration.pays_on == frozenset()
