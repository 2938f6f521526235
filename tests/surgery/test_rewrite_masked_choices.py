"""Choices between scores and a number as products with the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from surgery.rewrite_masked_choices import rewrite_masked_choices
from tests.onnx_runs import Array, run
from tests.surgery.norm_graphs import Steps
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = rewrite_masked_choices()
SHAPE = (1, 2, 5, 5)


def token_mask(steps: Steps) -> str:
    """1 where both tokens are real, [1, 1, 5, 5], as VITS makes it."""
    real = steps.add("Less", steps.constant(np.arange(5), np.int64), "n")
    row = steps.add("Cast", steps.add("Unsqueeze", real, steps.constant([0, 1], np.int64)), to=TensorProto.FLOAT)
    columns = steps.add("Unsqueeze", row, steps.constant([2], np.int64))
    return steps.add("Mul", columns, steps.add("Unsqueeze", row, steps.constant([3], np.int64)))


def attention(layers: int = 1, number: Any = -1e4, zero: Any = 0.0, swapped: bool = False) -> ir.Model:
    """As many masked softmaxes in a row."""
    steps = Steps()
    mask = token_mask(steps)
    compared = (steps.constant(zero), mask) if swapped else (mask, steps.constant(zero))
    chooses, scores = steps.add("Equal", *compared), "x"
    for _ in range(layers):
        scores = steps.add("Softmax", steps.add("Where", chooses, steps.constant(number), scores), axis=-1)
    return finished(steps)


def finished(steps: Steps) -> ir.Model:
    """The graph of `steps` on scores `x`, and the number `n` of real tokens."""
    model = steps.proto({"x": SHAPE, "n": (1,)}, SHAPE)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    return ir.from_proto(model)


def feed(count: int, spread: float = 3.0) -> dict[str, Array]:
    scores = np.random.default_rng(count).standard_normal(SHAPE) * spread
    return {"x": scores.astype(np.float32), "n": np.array([count], np.int64)}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("number", [-1e4, [-1e4], [[7.0]], 0.0])
@pytest.mark.parametrize("zero", [0.0, [0.0]])
def test_choice_is_a_product_and_a_sum(number: Any, zero: Any, swapped: bool) -> None:
    made = equal_after(PASS, attention(number=number, zero=zero, swapped=swapped), feed=feed(3))
    assert not {"Where", "Equal"} & set(operators(made))


@given(st.integers(0, 5), st.floats(0.1, 1000))
@settings(max_examples=20, deadline=None)
def test_choice_gives_the_same_scores_bit_for_bit(count: int, spread: float) -> None:
    steps = Steps()
    steps.add("Where", steps.add("Equal", token_mask(steps), steps.constant(0.0)), steps.constant(-1e4), "x")
    original, given_ = finished(steps), feed(count, spread)
    wanted = given_["x"].copy()
    real = np.arange(5) < count
    wanted[..., ~(real[:, None] & real[None, :])] = -1e4
    np.testing.assert_array_equal(run(original, given_)["y"], wanted)
    np.testing.assert_array_equal(run(PASS.rewrite(original).model, given_)["y"], wanted)


def test_choices_by_one_mask_share_what_is_added() -> None:
    made = equal_after(PASS, attention(layers=3), hits=3, feed=feed(4))
    # Two tokens' mask, and three times the scores with it; once what stands for masked ones.
    assert sorted(operators(made)).count("Mul") == 1 + 3 + 1
    assert operators(made).count("Sub") == 1


def test_choices_of_other_numbers_do_not_share() -> None:
    steps = Steps()
    chooses = steps.add("Equal", token_mask(steps), steps.constant(0.0))
    first = steps.add("Where", chooses, steps.constant(-1e4), "x")
    steps.add("Where", chooses, steps.constant(-5e3), steps.add("Neg", first))
    made = equal_after(PASS, finished(steps), hits=2, feed=feed(2))
    assert operators(made).count("Sub") == 2


def test_comparison_that_something_else_reads_stays() -> None:
    steps = Steps()
    chooses = steps.add("Equal", token_mask(steps), steps.constant(0.0))
    masked = steps.add("Where", chooses, steps.constant(-1e4), "x")
    steps.add("Add", masked, steps.add("Cast", chooses, to=TensorProto.FLOAT))
    assert "Equal" in operators(equal_after(PASS, finished(steps), feed=feed(2)))


def _of_any_mask() -> ir.Model:
    steps = Steps()
    steps.add("Where", steps.add("Equal", "m", steps.constant(0.0)), steps.constant(-1e4), "x")
    return steps.model({"x": SHAPE, "m": (1, 1, 5, 5)}, SHAPE)


def _of_a_sum() -> ir.Model:
    steps = Steps()
    mask = token_mask(steps)
    twice = steps.add("Add", mask, mask)
    steps.add("Where", steps.add("Equal", twice, steps.constant(0.0)), steps.constant(-1e4), "x")
    return finished(steps)


def _scaled() -> ir.Model:
    steps = Steps()
    twice = steps.add("Mul", token_mask(steps), steps.constant(2.0))
    steps.add("Where", steps.add("Equal", twice, steps.constant(0.0)), steps.constant(-1e4), "x")
    return finished(steps)


def _turned() -> ir.Model:
    steps = Steps()
    steps.add("Where", steps.add("Equal", token_mask(steps), steps.constant(0.0)), "x", steps.constant(-1e4))
    return finished(steps)


def _computed() -> ir.Model:
    steps = Steps()
    chooses = steps.add("Equal", token_mask(steps), steps.constant(0.0))
    steps.add("Where", chooses, steps.add("Neg", "x"), "x")
    return finished(steps)


def _by_a_boolean() -> ir.Model:
    steps = Steps()
    steps.add("Where", steps.add("Cast", token_mask(steps), to=TensorProto.BOOL), steps.constant(-1e4), "x")
    return finished(steps)


def _of_another_domain() -> ir.Model:
    made = attention()
    next(node for node in made.graph if node.op_type == "Where").domain = "com.example"
    return made


@pytest.mark.parametrize(
    "original",
    [
        pytest.param(_of_any_mask(), id="a mask that may hold anything"),
        pytest.param(_of_a_sum(), id="a sum of masks"),
        pytest.param(_scaled(), id="a mask of twos"),
        pytest.param(_turned(), id="the scores where the mask is zero"),
        pytest.param(_computed(), id="numbers that are computed"),
        pytest.param(_by_a_boolean(), id="no comparison"),
        pytest.param(_of_another_domain(), id="an operator of somebody else's"),
        pytest.param(attention(zero=1.0), id="compared with one"),
        pytest.param(attention(number=-1e9), id="a number past fp16"),
        pytest.param(attention(number=float("-inf")), id="minus infinity"),
        pytest.param(attention(number=float("nan")), id="no number"),
        pytest.param(attention(number=[-1e4, -1e3, 0, 1, 2]), id="several numbers"),
        pytest.param(attention(number=[[[[[-1e4]]]]]), id="a number of more axes"),
    ],
)
def test_what_is_no_such_choice_is_left_alone(original: ir.Model) -> None:
    left_alone(PASS, original)
