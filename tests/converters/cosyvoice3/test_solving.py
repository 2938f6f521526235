"""What the solver hands over: upstream's times, and a guidance pair."""

from __future__ import annotations

from math import cos, pi

import numpy as np
import pytest

from converters.cosyvoice3.solving import rounded_time, shown
from models.cosyvoice3.layout import input_shapes
from tests.cosyvoice3_files import REDUCED


def test_times_are_the_solvers_as_fp16_holds_them() -> None:
    times = [rounded_time(step) for step in range(10)]
    assert times[0] == 0.0
    assert all(float(np.float16(time)) == time for time in times)
    assert times == pytest.approx([1 - cos(0.5 * pi * step / 10) for step in range(10)], abs=3e-4)


def test_the_second_row_has_the_first_ones_noise_and_no_conditions() -> None:
    feed = shown(input_shapes(REDUCED, 12), 9, step=4)
    assert {name: array.shape for name, array in feed.items()} == input_shapes(REDUCED, 12)
    assert all(array.dtype == np.float32 for array in feed.values())
    np.testing.assert_array_equal(feed["x"][0], feed["x"][1])
    assert not any(feed[name][1, ..., :9].any() for name in ("mu", "cond", "spks"))
    assert all(feed[name][0].any() for name in ("mu", "cond", "spks"))
    assert np.all(feed["t"] == rounded_time(4))


def test_a_third_is_the_prompts_and_padding_is_masked_and_not_zero() -> None:
    feed = shown(input_shapes(REDUCED, 12), 9, step=1)
    assert feed["mask"].tolist() == [[[1.0] * 9 + [0.0] * 3]] * 2
    assert feed["cond"][0, :, :3].all()
    assert not feed["cond"][0, :, 3:9].any()
    assert all(feed[name][..., 9:].all() for name in ("x", "mu", "cond"))
    assert 0.9 < float(np.std(feed["x"].astype(np.float64))) < 1.1
