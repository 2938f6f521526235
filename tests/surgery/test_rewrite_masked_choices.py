"""Choices between scores and a number as products with the mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from surgery.graph import input_of
from surgery.rewrite_masked_choices import rewrite_masked_choices
from tests.onnx_runs import Array, run
from tests.surgery.norm_graphs import Steps
from tests.surgery.one_operator import equal_after, left_alone, only, operators

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


def finished(steps: Steps, **inputs: Sequence[int]) -> ir.Model:
    """The graph of `steps` on scores `x`, the number `n` of real tokens, and other inputs."""
    model = steps.proto({"x": SHAPE, "n": (1,), **inputs}, SHAPE)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    return ir.from_proto(model)


def feed(count: int, spread: float = 3.0) -> dict[str, Array]:
    scores = np.random.default_rng(count).standard_normal(SHAPE) * spread
    return {"x": scores.astype(np.float32), "n": np.array([count], np.int64)}


def real(count: int) -> Array:
    """Which pairs of tokens are real, [5, 5]."""
    tokens = np.arange(5) < count
    return tokens[:, None] & tokens[None, :]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("number", [-1e4, [-1e4], [[7.0]], 0.0, np.full((1, 2, 5, 5), -1e4)])
@pytest.mark.parametrize("zero", [0.0, [0.0]])
def test_choice_is_a_product_and_a_sum(number: Any, zero: Any, swapped: bool) -> None:
    made = equal_after(PASS, attention(number=number, zero=zero, swapped=swapped), feed=feed(3))
    assert not {"Where", "Equal"} & set(operators(made))


def test_choice_of_zero_is_a_product() -> None:
    made = equal_after(PASS, attention(number=0.0), feed=feed(3))
    assert operators(made)[-2:] == ["Mul", "Softmax"]
    assert "Add" not in operators(made)


Condition = Callable[[Steps], str]
"""Adds to a graph what is true for real pairs of tokens."""


def _compared(op: str, limit: float, turned: bool = False) -> Condition:
    def condition(steps: Steps) -> str:
        operands = [token_mask(steps), steps.constant(limit)]
        return steps.add(op, *(reversed(operands) if turned else operands))

    return condition


def _cast(steps: Steps) -> str:
    return steps.add("Cast", token_mask(steps), to=TensorProto.BOOL)


def _of_integers(steps: Steps) -> str:
    whole = steps.add("Cast", token_mask(steps), to=TensorProto.INT64)
    return steps.add("Greater", whole, steps.constant(0, np.int64))


def _of_booleans(steps: Steps) -> str:
    # Nothing is compared with a number: the condition is the mask.
    row = steps.add("Unsqueeze", steps.add("Less", steps.constant(np.arange(5), np.int64), "n"), _axes(steps, 0, 1))
    return steps.add("And", steps.add("Unsqueeze", row, _axes(steps, 2)), steps.add("Unsqueeze", row, _axes(steps, 3)))


def _expanded(steps: Steps) -> str:
    return steps.add("Expand", _of_booleans(steps), steps.constant([1, 2, 5, 5], np.int64))


def _axes(steps: Steps, *axes: int) -> str:
    return steps.constant(axes, np.int64)


REAL: dict[str, tuple[Condition, set[str]]] = {
    "equal to one": (_compared("Equal", 1.0), {"Equal"}),
    "greater than a half": (_compared("Greater", 0.5), {"Greater"}),
    "at least one": (_compared("GreaterOrEqual", 1.0), {"GreaterOrEqual"}),
    "zero is less": (_compared("Less", 0.0, turned=True), set()),
    "a half is at most": (_compared("LessOrEqual", 0.5, turned=True), {"LessOrEqual"}),
    "a cast": (_cast, set()),
    "whole numbers": (_of_integers, {"Greater"}),
    "booleans": (_of_booleans, set()),
    "expanded": (_expanded, {"Expand"}),
}
"""By its kind, a condition, and the operators that go with the choice."""

TURNED = {"Equal": 0.0, "Less": 0.5, "LessOrEqual": 0.0}
"""Comparisons of a mask that are true where it is zero."""


@pytest.mark.parametrize("count", [0, 1, 3, 5])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("kind", REAL)
def test_choice_gives_numpys_scores_whatever_the_condition_is(kind: str, negated: bool, count: int) -> None:
    steps, (condition, gone) = Steps(), REAL[kind]
    chooses, far = condition(steps), steps.constant(-1e4)
    masked = steps.add("Where", steps.add("Not", chooses), far, "x") if negated else None
    masked = masked or steps.add("Where", chooses, "x", far)
    steps.add("Softmax", masked, axis=-1)
    made = equal_after(PASS, finished(steps), feed=feed(count))
    assert not ({"Where", "Not"} | gone) & set(operators(made))
    scores = np.where(real(count), feed(count)["x"].astype(np.float64), -1e4)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(run(made, feed(count))["y"], powers / powers.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("op", TURNED)
@pytest.mark.parametrize("count", [0, 3, 5])
def test_scores_stay_where_the_mask_is_zero_when_the_choice_says_so(op: str, count: int) -> None:
    steps = Steps()
    chooses = _compared(op, TURNED[op])(steps)
    steps.add("Softmax", steps.add("Where", chooses, "x", steps.constant(-1e4)), axis=-1)
    made = equal_after(PASS, finished(steps), feed=feed(count))
    assert not {"Where", op} & (set(operators(made)) - {"Less"})
    scores = np.where(real(count), -1e4, feed(count)["x"].astype(np.float64))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(run(made, feed(count))["y"], powers / powers.sum(-1, keepdims=True), rtol=1e-5)


@given(st.integers(0, 5), st.floats(0.1, 1000))
@settings(max_examples=20, deadline=None)
def test_choice_gives_the_same_scores_bit_for_bit(count: int, spread: float) -> None:
    steps = Steps()
    masked = steps.add("Where", steps.add("Equal", token_mask(steps), steps.constant(0.0)), steps.constant(-1e4), "x")
    steps.add("Softmax", masked, axis=-1)
    given_ = feed(count, spread)
    wanted = np.where(real(count), given_["x"], np.float32(-1e4))
    made = PASS.rewrite(finished(steps)).model
    made.graph.outputs.append(input_of(only(made, "Softmax")))
    np.testing.assert_array_equal([*run(made, given_).values()][1], wanted)


@pytest.mark.parametrize("dtype", [TensorProto.BOOL, TensorProto.INT32])
@pytest.mark.parametrize("padded", [False, True])
def test_mask_that_is_an_input_is_taken_for_what_the_condition_makes_of_it(dtype: int, padded: bool) -> None:
    # Of booleans; of whole numbers that may be others than zero and one, the comparison stays, and is cast.
    steps = Steps()
    zero = steps.constant(0, np.int32)
    asked = steps.add("Equal", "m", zero) if dtype == TensorProto.INT32 else "m"
    operands = (steps.constant(-1e4), "x")
    steps.add("Softmax", steps.add("Where", asked, *(operands if padded else operands[::-1])), axis=-1)
    model = steps.proto({"x": SHAPE, "m": (1, 1, 1, 5)}, SHAPE)
    model.graph.input[1].type.tensor_type.elem_type = dtype
    kind = np.bool_ if dtype == TensorProto.BOOL else np.int32
    given_ = {"x": feed(2)["x"], "m": np.array([0, 1, 3, 0, 1]).astype(kind).reshape(1, 1, 1, 5)}
    made = equal_after(PASS, ir.from_proto(model), feed=given_)
    assert "Where" not in operators(made)
    assert ("Equal" in operators(made)) is (dtype == TensorProto.INT32)


def test_constant_mask_becomes_constants() -> None:
    steps = Steps()
    keep = steps.constant(np.tril(np.ones((5, 5))), np.bool_)
    scores = "x"
    for _ in range(2):
        scores = steps.add("Softmax", steps.add("Where", keep, scores, steps.constant(-1e4)), axis=-1)
    made = equal_after(PASS, steps.model({"x": SHAPE}, SHAPE), hits=2)
    assert operators(made) == ["Mul", "Add", "Softmax"] * 2
    first, again = (node.inputs[1] for node in made.graph if node.op_type == "Mul")
    assert first is again


def test_choices_by_one_mask_share_what_is_added() -> None:
    made = equal_after(PASS, attention(layers=3), hits=3, feed=feed(4))
    # Two tokens' mask, and three times the scores with it; once what stands for masked ones.
    assert sorted(operators(made)).count("Mul") == 1 + 3 + 1
    assert operators(made).count("Sub") == 1


def test_choices_of_other_numbers_share_the_mask_alone() -> None:
    steps = Steps()
    chooses = _of_booleans(steps)
    first = steps.add("Where", chooses, "x", steps.constant(-1e4))
    biased = steps.add("Add", first, steps.constant(1.0))
    steps.add("Softmax", steps.add("Where", chooses, biased, steps.constant(-5e3)), axis=-1)
    made = equal_after(PASS, finished(steps), hits=2, feed=feed(2))
    # Products and sums of two choices and the bias, and a product of the mask alone for each number.
    assert [operators(made).count(op) for op in ("Cast", "Sub", "Add", "Mul")] == [1, 1, 2 + 1, 2 + 2]


def test_comparison_that_something_else_reads_stays() -> None:
    steps = Steps()
    chooses = steps.add("Equal", token_mask(steps), steps.constant(0.0))
    masked = steps.add("Softmax", steps.add("Where", chooses, steps.constant(-1e4), "x"), axis=-1)
    steps.add("Add", masked, steps.add("Cast", chooses, to=TensorProto.FLOAT))
    assert "Equal" in operators(equal_after(PASS, finished(steps), feed=feed(2)))


@pytest.mark.parametrize("factor", [1.0, 2.0, -3.0])
def test_mask_that_may_hold_anything_is_compared_still(factor: float) -> None:
    steps = Steps()
    asked = steps.add("Equal", steps.add("Mul", "m", steps.constant(factor)), steps.constant(0.0))
    steps.add("Softmax", steps.add("Where", asked, steps.constant(-1e4), "x"), axis=-1)
    given_ = {"x": feed(2)["x"], "m": np.array([0.0, 1, 2, 0, 0.5], np.float32).reshape(1, 1, 1, 5)}
    made = equal_after(PASS, steps.model({"x": SHAPE, "m": (1, 1, 1, 5)}, SHAPE), feed=given_)
    assert "Equal" in operators(made)


def _sum_of_masks(steps: Steps) -> str:
    mask = token_mask(steps)
    return steps.add("Add", mask, mask)


def _twos(steps: Steps) -> str:
    return steps.add("Mul", token_mask(steps), steps.constant(2.0))


def _clipped(steps: Steps) -> str:
    # A Clip has bounds of its own: no value of this is zero.
    return steps.add("Clip", token_mask(steps), steps.constant(0.5))


@pytest.mark.parametrize("mask", [_sum_of_masks, _twos, _clipped])
def test_what_is_made_of_masks_but_of_other_numbers_is_compared_still(mask: Condition) -> None:
    steps = Steps()
    asked = steps.add("Equal", mask(steps), steps.constant(0.0))
    steps.add("Softmax", steps.add("Where", asked, steps.constant(-1e4), "x"), axis=-1)
    assert "Equal" in operators(equal_after(PASS, finished(steps), feed=feed(3)))


SCORES: dict[str, Callable[[Steps], str]] = {
    "scaled": lambda steps: steps.add("Div", steps.add("MatMul", "x", "x"), steps.constant(8.0)),
    "with a bias": lambda steps: steps.add("Add", steps.add("MatMul", "x", "x"), steps.constant(np.ones((5, 5)))),
    "masked before": lambda steps: steps.add(
        "Where", _of_booleans(steps), steps.add("Tanh", "x"), steps.constant(-5e3, np.float32)
    ),
    "normalised": lambda steps: steps.add("LayerNormalization", "x", steps.constant(np.ones(5)), axis=-1),
}


@pytest.mark.parametrize("kind", SCORES)
def test_scores_that_are_finite_as_the_graph_shows_are_multiplied(kind: str) -> None:
    steps = Steps(opset=17)
    scores = SCORES[kind](steps)
    steps.add("Softmax", steps.add("Where", _of_booleans(steps), scores, steps.constant(-1e4)), axis=-1)
    equal_after(PASS, finished(steps), hits=2 if kind == "masked before" else 1, feed=feed(3))


def _of_softmax(scores: Callable[[Steps], str], number: Any = -1e4) -> ir.Model:
    steps = Steps()
    steps.add("Softmax", steps.add("Where", _of_booleans(steps), scores(steps), steps.constant(number)), axis=-1)
    return finished(steps)


def _of_no_softmax() -> ir.Model:
    steps = Steps()
    steps.add("Tanh", steps.add("Where", _of_booleans(steps), "x", steps.constant(-1e4)))
    return finished(steps)


def _computed() -> ir.Model:
    steps = Steps()
    steps.add("Softmax", steps.add("Where", _of_booleans(steps), steps.add("Neg", "x"), "x"), axis=-1)
    return finished(steps)


def _of_two_numbers() -> ir.Model:
    steps = Steps()
    bias = steps.add("Where", _of_booleans(steps), steps.constant(0.0), steps.constant(-1e4))
    steps.add("Softmax", steps.add("Add", "x", bias), axis=-1)
    return finished(steps)


def _of_more_axes(condition: bool) -> ir.Model:
    # The choice has an axis more than scores and mask: by the number it compares with, or the one it takes.
    steps = Steps()
    numbers = [[[[[[0.0]]]]], -1e4] if condition else [0.0, [[[[[-1e4]]]]]]
    asked = steps.add("Equal", token_mask(steps), steps.constant(numbers[0]))
    chosen = steps.add("Where", asked, steps.constant(numbers[1]), "x")
    steps.add("Squeeze", steps.add("Softmax", chosen, axis=-1), steps.constant([0], np.int64))
    return finished(steps)


def _of_another_domain() -> ir.Model:
    made = attention()
    next(node for node in made.graph if node.op_type == "Where").domain = "com.example"
    return made


@pytest.mark.parametrize(
    "original",
    [
        pytest.param(_of_no_softmax(), id="no scores"),
        pytest.param(_computed(), id="numbers that are computed"),
        pytest.param(_of_two_numbers(), id="a choice of two numbers"),
        pytest.param(_of_another_domain(), id="an operator of somebody else's"),
        pytest.param(_of_softmax(lambda steps: steps.add("Log", "x")), id="a logarithm"),
        pytest.param(_of_softmax(lambda steps: steps.add("Div", "x", "x")), id="a fraction"),
        pytest.param(_of_softmax(lambda steps: steps.add("Div", "x", steps.constant(0.0))), id="a division by zero"),
        pytest.param(
            _of_softmax(lambda steps: steps.add("Add", "x", steps.constant([0, 0, 0, 0, -np.inf]))), id="a bias of -inf"
        ),
        pytest.param(
            _of_softmax(lambda steps: steps.add("Where", _of_booleans(steps), "x", steps.constant(-np.inf))),
            id="masked with -inf before",
        ),
        pytest.param(attention(number=-1e9), id="a number past fp16"),
        pytest.param(attention(number=float("-inf")), id="minus infinity"),
        pytest.param(attention(number=float("nan")), id="no number"),
        pytest.param(attention(number=[-1e4, -1e3, 0, 1, 2]), id="several numbers"),
        pytest.param(_of_more_axes(condition=True), id="a condition of more axes"),
        pytest.param(_of_more_axes(condition=False), id="a number of more axes"),
    ],
)
def test_what_is_no_such_choice_is_left_alone(original: ir.Model) -> None:
    left_alone(PASS, original)
