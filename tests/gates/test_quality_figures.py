from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gates.quality_figures import (
    LSD_HOP,
    LSD_N_FFT,
    log_spectral_distance,
    mel_l1,
    mel_l1_relative,
    row_cosines,
    same_largest,
    whole_cosine,
)

MEL = np.array([[-4.0, 2.0], [1.0, -3.0]], np.float32)
"""Its absolute values sum to 10, their squares to 30."""


def test_mel_l1_is_the_mean_absolute_difference() -> None:
    assert mel_l1(MEL, MEL + np.array([[0.5, -0.5], [0.0, 0.2]])) == pytest.approx([0.3])


def test_relative_mel_l1_is_a_share_of_the_sum_of_what_is_owed() -> None:
    assert mel_l1_relative(MEL, MEL + np.array([[0.5, -0.5], [0.0, 0.2]])) == pytest.approx([0.12])


def test_reference_figures_are_those_of_an_absolute_mel_l1() -> None:
    """The docstring's argument: what a cosine says of the relative error is no L1 of that share."""
    for l1, cosine in ((0.17048, 0.998754), (0.016937, 0.999989)):
        assert l1 / math.sqrt(2 * (1 - cosine)) == pytest.approx(3.5, abs=0.12)


def test_cosine_of_spectrograms_is_of_all_values_at_once() -> None:
    other = np.array([[-4.0, 2.0], [1.0, 3.0]])
    assert whole_cosine(MEL, other) == pytest.approx([12 / 30])


def test_cosines_are_of_each_row() -> None:
    rows = np.array([[1.0, 0.0], [3.0, 4.0], [1e-30, 0.0], [1e30, 1e30]])
    other = np.array([[0.0, 2.0], [4.0, 3.0], [5.0, 0.0], [-1.0, -1.0]])
    assert row_cosines(rows, other) == pytest.approx([0.0, 24 / 25, 1.0, -1.0])


def test_cosine_keeps_its_digits_near_one() -> None:
    error = 1e-9
    (cosine,) = row_cosines(np.array([[1.0, 0.0]]), np.array([[1.0, error]]))
    assert cosine <= 1.0
    assert row_cosines(MEL, MEL).tolist() == [1.0, 1.0]


def test_cosine_with_a_row_of_zeros_is_no_number() -> None:
    assert np.isnan(row_cosines(np.zeros((1, 3)), np.ones((1, 3)))).all()
    assert np.isnan(row_cosines(np.ones((1, 3)), np.zeros((1, 3)))).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_cosine_does_not_see_a_gain(seed: int, gain: float) -> None:
    rows = np.random.default_rng(seed).standard_normal((3, 17)) + 0.1
    assert row_cosines(rows, rows * gain) == pytest.approx([1.0] * 3, abs=1e-12)
    assert row_cosines(rows, -rows * gain) == pytest.approx([-1.0] * 3, abs=1e-12)


def test_largest_number_of_each_row_is_found_again_or_not() -> None:
    first = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 1.0], [2.0, 2.0, 0.0]])
    other = np.array([[0.0, 9.0, 8.0], [4.0, 4.1, 1.0], [7.0, 7.0, 0.0]])
    assert same_largest(first, other).tolist() == [100.0, 0.0, 100.0]


def _noise(seconds: float) -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal(int(24000 * seconds)).astype(np.float32)


@pytest.mark.parametrize("seconds", [0.01, 0.08, 0.5])
@pytest.mark.parametrize("gain_db", [-6.0, 0.0, 2.5])
def test_gain_is_its_own_log_spectral_distance(seconds: float, gain_db: float) -> None:
    wave = _noise(seconds)
    assert log_spectral_distance(wave, wave * 10 ** (gain_db / 20)) == pytest.approx([abs(gain_db)], abs=1e-5)


def test_log_spectral_distance_is_by_the_formula_on_two_frames() -> None:
    """Bin by bin, with a transform written out as a sum."""
    reference = np.random.default_rng(1).standard_normal(LSD_N_FFT + LSD_HOP)
    measured = reference + 0.3 * np.random.default_rng(2).standard_normal(reference.size)
    n = np.arange(LSD_N_FFT)
    window = np.sin(np.pi * n / LSD_N_FFT) ** 2  # Hann by another formula
    kernel = np.exp(-2j * np.pi * np.outer(np.arange(LSD_N_FFT // 2 + 1), n) / LSD_N_FFT)
    distances = []
    for start in (0, LSD_HOP):
        sides = [np.abs(kernel @ (wave[start : start + LSD_N_FFT] * window)) for wave in (reference, measured)]
        distances.append(np.sqrt(np.mean((20 * np.log10(sides[1] / sides[0])) ** 2)))
    assert log_spectral_distance(reference, measured) == pytest.approx([np.mean(distances)], rel=1e-9)


def test_what_is_far_below_the_loudest_bin_counts_for_silence() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(24000) / 24000)
    quiet = 1e-7 * _noise(1.0)
    assert log_spectral_distance(tone, tone + quiet)[0] < 0.01
    assert log_spectral_distance(tone, tone + 1e-2 * _noise(1.0))[0] > 10


def test_silent_output_is_at_most_the_range_away() -> None:
    distance = log_spectral_distance(_noise(0.5), np.zeros(12000))[0]
    assert 60 < distance < 80
