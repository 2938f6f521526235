"""Drawn streams."""

from __future__ import annotations

from math import cos, pi

import numpy as np
import pytest

from converters.cosyvoice2.flow_estimator_drawn import PROMPT_FRAMES
from tests.cosyvoice2_estimator import drawn


def test_longer_stream_begins_with_a_shorter_one() -> None:
    one, other = drawn(30), drawn(50).part(0, 30)
    for name in ("x", "mu", "cond", "spks", "t"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_second_row_has_the_noise_and_no_conditions() -> None:
    stream = drawn(30)
    np.testing.assert_array_equal(stream.x[0], stream.x[1])
    assert all(array[0].any() and not array[1].any() for array in (stream.mu, stream.cond, stream.spks))
    assert not stream.cond[..., PROMPT_FRAMES:].any()


@pytest.mark.parametrize(("step", "time"), [(0, 0.0), (5, 1 - cos(pi / 4)), (10, 1.0)])
def test_times_are_the_solvers(step: int, time: float) -> None:
    assert drawn(3, step).t.tolist() == pytest.approx([time, time])
