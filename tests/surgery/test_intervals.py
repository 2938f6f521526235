"""Intervals hold every number that their operands can make, and end at one that they do."""

from __future__ import annotations

from itertools import product as corners

import numpy as np
import pytest

from surgery import intervals
from surgery.intervals import OPEN, Range, product, weighted
from tests.onnx_runs import Array

INF, FAR = np.inf, 2.0**40
RANGES = [(-2.0, 3.0), (-3.0, -1.0), (0.5, 2.0), (0.0, 0.0), (-INF, 1.0), (0.0, INF), (-INF, INF)]


def ends_by_hand(weights: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the greatest sum over all corners of the box [group, taken]; what is very far is infinite."""
    low, high = (np.clip(end, -FAR, FAR) for end in (low, high))
    boxes = [np.where(np.reshape(which, low.shape), high, low) for which in corners((0, 1), repeat=low.size)]
    sums = [(weights[..., 0] * box[:, np.newaxis]).sum(axis=-1).reshape(-1) for box in boxes]
    ends = np.min(sums, axis=0), np.max(sums, axis=0)
    least, greatest = (np.where(np.abs(end) >= FAR / 2, np.copysign(INF, end), end) for end in ends)
    return least, greatest


@pytest.mark.parametrize("part", [1, 4, 2**20])
@pytest.mark.parametrize("seed", range(40))
def test_weighted_sums_reach_from_the_least_corner_to_the_greatest(
    seed: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "_PART", part)
    rng = np.random.default_rng(seed)
    group, made, taken = rng.integers(1, 3), rng.integers(1, 6), rng.integers(1, 4)
    weights = rng.integers(-2, 3, (group, made, taken, 1)).astype(np.float32)
    drawn = np.array(RANGES)[rng.integers(0, 4 if seed % 2 else len(RANGES), (group, taken))]
    found = weighted(weights, Range(drawn[:, np.newaxis, :, 0], drawn[:, np.newaxis, :, 1]))
    low, high = ends_by_hand(weights, drawn[..., 0], drawn[..., 1])
    np.testing.assert_array_equal(found.low, low)
    np.testing.assert_array_equal(found.high, high)


def test_weighted_sums_take_each_tap_by_its_own_sign() -> None:
    """Taps of one channel read different steps: 1 and -1 do not cancel."""
    found = weighted(np.array([[[[1.0, -1.0]]]], np.float32), Range(np.array([[[-2.0]]]), np.array([[[3.0]]])))
    assert (found.low.item(), found.high.item()) == (-5.0, 5.0)


def test_one_bound_stands_for_all() -> None:
    weights = np.array([[[[1.0], [-2.0]], [[0.0], [0.0]]]], np.float32)
    found = weighted(weights, Range(np.array([-1.0]), np.array([3.0])))
    np.testing.assert_array_equal([found.low, found.high], [[-7.0, 0.0], [5.0, 0.0]])


@pytest.mark.parametrize("first", [0.0, 2.0])
def test_open_data_is_bounded_only_where_all_weights_are_zero(first: float) -> None:
    found = weighted(np.array([[[[first], [1.0]], [[0.0], [0.0]]]], np.float32), OPEN)
    np.testing.assert_array_equal([found.low, found.high], [[-INF, 0.0], [INF, 0.0]])


def test_sums_are_of_doubles() -> None:
    """In float32, 2^24 + 1 is 2^24: a bound that is rounded so is none."""
    weights = np.array([[[[2.0**24], [1.0]]]], np.float32)
    assert weighted(weights, Range(np.array([0.0]), np.array([1.0]))).high == 2.0**24 + 1


def test_product_with_zero_is_zero_however_far_the_bound_is() -> None:
    np.testing.assert_array_equal(product(np.array([INF, -INF, 0.0]), np.array([0.0, 2.0, INF])), [0.0, -INF, 0.0])


def test_range_of_a_product_turns_round_with_a_negative_factor() -> None:
    found = Range(np.array([-1.0, 0.0]), np.array([2.0, INF])).times(np.array([-3.0, -1.0]))
    np.testing.assert_array_equal([found.low, found.high], [[-6.0, -INF], [3.0, 0.0]])


def test_range_along_an_axis_holds_all_the_others() -> None:
    ends = np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    found = Range(ends, ends).along(-1, 3)
    np.testing.assert_array_equal([found.low, found.high], [[1.0, 0.0, 2.0], [4.0, 5.0, 3.0]])
    assert found.placed(1, 3).low.shape == (1, 3, 1)
    assert OPEN.along(1, 3).low.shape == (1,)


def test_range_is_open_only_where_nothing_is_known() -> None:
    assert OPEN.is_open
    assert not Range(np.array(-INF), np.array([0.0, INF])).is_open
    assert OPEN.plus(Range(np.array(1.0), np.array(1.0))).is_open
    assert not Range(np.array(1.0), np.array(2.0)).around(Range(np.array(0.0), np.array(0.0))).is_open
