"""The three maps of a squared sine of any gain, against the sine itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surgery.sine_chains import HARD
from surgery.sine_soft import (
    BIAS,
    HEIGHT,
    LARGEST_GAIN,
    SHIFT,
    SOFT_BOUND,
    STEEPNESS,
    soft_offset,
    soft_reaches,
    squaring,
)
from tests.surgery.test_sine_chains import hard_swish


def softplus(x: float) -> float:
    """As ONNX's operator specification has it."""
    return math.log(1 + math.exp(x))


def mapped(w: float, gain: float) -> float:
    """gain sin^2(pi w), but for the offset."""
    scale, shift = squaring(gain)
    return hard_swish(float(scale) * softplus(STEEPNESS * hard_swish(-HARD * w) + BIAS) + float(shift))


@pytest.mark.parametrize("gain", [0.01, 0.5, 1.0, 3.37])
def test_maps_keep_their_bound_and_nearly_take_it(gain: float) -> None:
    offset = float(soft_offset(gain))
    worst = max(
        abs(mapped(step / 4000, gain) + offset - gain * math.sin(math.pi * step / 4000) ** 2) for step in range(4001)
    )
    assert 0.98 * SOFT_BOUND < worst / gain <= SOFT_BOUND


@pytest.mark.parametrize("w", [0.0, 1.0, 1.01, 30.0])
def test_maps_are_zero_at_both_ends_and_behind(w: float) -> None:
    assert abs(mapped(w, 3.37) + 0.375) < 2e-7


def test_argument_of_the_last_map_reaches_three_at_the_largest_gain() -> None:
    scale, shift = squaring(LARGEST_GAIN)
    highest = softplus(STEEPNESS * -0.375 + BIAS)
    assert float(scale) * highest + float(shift) == pytest.approx(3.0)
    assert pytest.approx(1.0, abs=SOFT_BOUND) == HEIGHT * (highest + SHIFT) ** 2


def test_factor_of_the_softplus_is_held_by_fp16() -> None:
    assert np.float16(STEEPNESS) == STEEPNESS


@pytest.mark.parametrize(
    ("gain", "reaches"),
    [(1.0, True), (3.37, True), (3.38, False), (0.0, False), (-1.0, False), (float("nan"), False),
     ([0.1, 3.0], True), ([0.1, 3.4], False)],
)  # fmt: skip
def test_maps_reach_a_gain_when_it_is_positive_and_not_too_large(gain: float | list[float], reaches: bool) -> None:
    assert soft_reaches(gain) is reaches
    if not reaches:
        with pytest.raises(ValueError, match=r"a gain is not between 0 and 3\.3[78]"):
            soft_offset(gain)


def test_offset_is_one_for_each_gain() -> None:
    made = soft_offset(np.array([0.1, 3.0, 1.0]))
    assert made.dtype == np.float32
    assert made.tolist() == [0.375, 0.375, 0.375]
    assert soft_offset(1.0).shape == ()
