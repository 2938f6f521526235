from __future__ import annotations

import math
import re

import numpy as np
import pytest
from rknn_tts_runtime.probing.comparison import Array, OutputFigure, compared, worst

from gates.snr import compare_arrays

ONES = np.ones((2, 8), np.float32)


def test_ratio_of_half_the_amplitude_is_6_db() -> None:
    figure = compared("y", ONES, ONES / 2, 6.0)
    assert figure.snr_db == pytest.approx(20 * math.log10(2))
    assert (figure.max_abs, figure.passed) == (0.5, True)
    assert figure.margin_db == pytest.approx(0.0206, abs=1e-4)
    assert not compared("y", ONES, ONES / 2, 6.03).passed


def test_identical_output_passes_any_bound() -> None:
    assert compared("y", ONES, ONES, 300.0) == OutputFigure("y", math.inf, 300.0, 0.0)


@pytest.mark.parametrize(
    ("expected", "output", "said"),
    [
        (ONES, ONES[:1], r"its shape is \[1, 8\], not \[2, 8\]"),
        (ONES[:0], ONES[:0], "holds no values"),
        (ONES, np.where(np.arange(8) == 3, np.nan, ONES), "it has 2 of 16 values that are not finite"),
        (np.where(np.arange(8) == 3, np.inf, ONES), ONES, "what is expected has 2 of 16"),
        (ONES * 0, ONES * 0, "all zero, so it proves nothing"),
        (ONES, ONES * 0, "it is all zero"),
    ],
)
def test_what_proves_nothing_fails_whatever_the_bound(expected: Array, output: Array, said: str) -> None:
    figure = compared("y", expected, output, -1000.0)
    assert not figure.passed
    assert figure.margin_db == -math.inf
    assert re.search(said, figure.problem)


def test_worst_is_the_least_above_its_own_bound() -> None:
    far, near, broken = (
        OutputFigure("far", 90.0, 40.0, 0.0),
        OutputFigure("near", 95.0, 94.0, 0.0),
        OutputFigure("broken", None, 40.0, None, "its shape is [1]"),
    )
    assert worst([far, near]) is near
    assert worst([far, near, broken]) is broken


@pytest.mark.parametrize("seed", range(4))
def test_ratio_is_that_of_the_toolchains_gates(seed: int) -> None:
    draw = np.random.default_rng(seed)
    expected = draw.normal(0, 3, (3, 50)).astype(np.float32)
    output = expected + draw.normal(0, 10.0**-seed, expected.shape).astype(np.float32)
    by_gate = compare_arrays(expected, output, "y")
    assert compared("y", expected, output, 0.0).snr_db == pytest.approx(by_gate.snr_db, rel=1e-12)


def test_bound_that_is_just_reached_passes() -> None:
    # 10 log10(100 / 1) = 20 dB exactly: 10 and a difference of 1.
    figure = compared("y", np.array([10.0, 0.0]), np.array([10.0, 1.0]), bound_db=20.0)
    assert (figure.snr_db, figure.max_abs, figure.passed, figure.margin_db) == (20.0, 1.0, True, 0.0)
