"""A number for each channel is subtracted by adding its negative."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.rewrite_channel_differences import rewrite_channel_differences
from tests.onnx_runs import run
from tests.surgery.norm_graphs import Steps, normalise
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operators

PASS = rewrite_channel_differences()
SHAPE = (2, 6, 9)


def difference(
    shape: tuple[int | str, ...] = SHAPE, taken: tuple[int | str, ...] = (2, 6, 1), order: str = "xv", **options: int
) -> ir.Model:
    steps = Steps()
    steps.add("Sub", *order)
    given: dict[str, tuple[int | str, ...]] = {"x": shape, "v": taken}
    return steps.model(given, [f"y{axis}" for axis in range(len(shape))], **options)


@pytest.mark.parametrize("opset", [7, 13, 19])
@pytest.mark.parametrize(
    ("shape", "taken"), [(SHAPE, (2, 6, 1)), (SHAPE, (1, 6, 1)), ((1, 6, 3, 4), (1, 6, 1, 1))]
)  # fmt: skip
def test_difference_is_bit_for_bit_a_sum(shape: tuple[int, ...], taken: tuple[int, ...], opset: int) -> None:
    original = difference(shape, taken)
    original.opset_imports[""] = opset
    made = equal_after(PASS, original)
    assert operators(made) == ["Neg", "Add"]
    feed = feed_of(original, 4)
    np.testing.assert_array_equal(run(original, feed)["y"], run(made, feed)["y"])


def _constant() -> ir.Model:
    steps = Steps()
    steps.add("Sub", "x", steps.constant(np.ones((1, 6, 1))))
    return steps.model({"x": SHAPE}, SHAPE)


def _known() -> ir.Model:
    steps = Steps()
    normalise(steps, "x", [2])
    return steps.model({"x": SHAPE}, SHAPE)


@pytest.mark.parametrize(
    "original",
    [
        difference(taken=SHAPE),
        difference(taken=(1, 1, 9)),
        difference(taken=(1, 1, 1)),
        difference(taken=(6, 1)),
        difference(order="vx"),
        difference(("n", 6, "t"), ("n", 6, 1)),
        difference((2, 6, 1), (2, 6, 1)),
        difference((1, 6, 9), (2, 6, 1)),
        difference((6, 9), (6, 1)),
        difference(dtype=TensorProto.INT32),
        _constant(),
        _known(),
    ],
    ids=[
        "all", "steps", "one number", "fewer axes", "the other way", "open", "one step", "grows", "rank 2", "whole",
        "constant", "normalisation",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_nothing_is_spread_over_the_steps(original: ir.Model) -> None:
    left_alone(PASS, original)
