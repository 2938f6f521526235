"""The inverse transform against torch's, against sums made by hand, and the loudness of a head that does not divide."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import istft

from gates.snr import snr_db

Floats = NDArray[np.float32]
SILENT = -200.0
"""A log magnitude whose exponential is zero in float32."""


def raw_spectrogram(columns: int, n_fft: int) -> Floats:
    draw = np.random.default_rng(columns)
    return draw.normal(0, 1.5, (1, n_fft + 2, columns)).astype(np.float32)


def bins_of(raw: Floats) -> NDArray[np.complex128]:
    """The generator's head as iSTFTNet defines it, in float64."""
    half = raw.shape[1] // 2
    spectrum: NDArray[np.complex128] = np.exp(raw[0, :half].astype(np.float64)) * np.exp(
        1j * np.sin(raw[0, half:].astype(np.float64))
    )
    return spectrum


@pytest.mark.parametrize(("n_fft", "hop"), [(20, 5), (16, 4), (8, 4), (12, 2)])
@pytest.mark.parametrize("columns", [2, 3, 7, 601])
def test_istft_equals_torch_when_given_noise(columns: int, n_fft: int, hop: int) -> None:
    raw = raw_spectrogram(columns, n_fft)
    window = torch.hann_window(n_fft, dtype=torch.float64)
    expected = torch.istft(torch.from_numpy(bins_of(raw))[None], n_fft, hop, n_fft, window).numpy()[0]
    samples = istft(raw, n_fft, hop)
    assert samples.shape == (hop * (columns - 1),)
    assert samples.dtype == np.float32
    assert snr_db(expected, samples) >= 120
    for edge in (slice(0, n_fft // 2), slice(-n_fft // 2, None)):
        assert snr_db(expected[edge], samples[edge]) >= 110


def test_istft_defaults_to_kokoros_transform() -> None:
    raw = raw_spectrogram(9, 20)
    np.testing.assert_array_equal(istft(raw), istft(raw, 20, 5))


def constant(columns: int, n_fft: int) -> Floats:
    """Raw columns whose frames are all ones before the window: n_fft in the lowest bin, phase 0."""
    raw = np.zeros((1, n_fft + 2, columns), np.float32)
    raw[:, : n_fft // 2 + 1] = SILENT
    raw[:, 0] = np.log(n_fft)
    return raw


def test_istft_matches_hand_made_sums_when_the_window_has_four_samples() -> None:
    # Hann of 4 is 0, 1/2, 1, 1/2. Behind the first two samples: (1 + 0) / (1 + 0), (1/2 + 1/2) / (1/4 + 1/4).
    np.testing.assert_allclose(istft(constant(2, 4), 4, 2), [1, 2], rtol=1e-6)


def test_istft_divides_by_what_overlaps_when_at_an_edge() -> None:
    samples = istft(constant(8, 20), 20, 5)
    # Three windows reach sample 0 (their samples 10, 5 and 0: 1, 1/2, 0), four a sample inside: sums 2 and 3/2.
    assert samples[0] == pytest.approx((1 + 1 / 2) / (1 + 1 / 4), rel=1e-6)
    assert samples[10] == pytest.approx(2 / 1.5, rel=1e-6)
    np.testing.assert_allclose(samples[1:], samples[1:][::-1], rtol=1e-5)


def test_istft_ignores_the_phase_of_the_outermost_bins() -> None:
    # The real part of e^(i sin(2)): 20 cos(sin(2)) in the lowest bin alone.
    raw = constant(8, 20)
    raw[:, 11] = 2
    np.testing.assert_allclose(istft(raw), istft(constant(8, 20)) * np.cos(np.sin(2)), rtol=1e-5)


def test_istft_is_a_third_quieter_than_a_head_without_division_when_four_windows_overlap() -> None:
    n_fft, hop, columns = 20, 5, 40
    raw = raw_spectrogram(columns, n_fft)
    window = np.sin(np.pi * np.arange(n_fft) / n_fft) ** 2
    undivided = np.zeros(n_fft + hop * (columns - 1))
    for column, frame in enumerate(np.fft.irfft(bins_of(raw), n_fft, axis=0).T):
        undivided[column * hop : column * hop + n_fft] += window * frame
    np.testing.assert_allclose(np.sum((window**2).reshape(4, hop), axis=0), 1.5)
    inside = slice(n_fft, -n_fft)
    np.testing.assert_allclose(undivided[10:-10][inside], 1.5 * istft(raw)[inside], atol=1e-4)


def test_istft_takes_half_precision_when_an_engine_gives_it() -> None:
    raw = raw_spectrogram(9, 20).astype(np.float16)
    np.testing.assert_array_equal(istft(raw), istft(raw.astype(np.float32)))


def test_istft_is_empty_when_there_is_one_column() -> None:
    assert istft(raw_spectrogram(1, 20)).shape == (0,)


@pytest.mark.parametrize("shape", [(1, 21, 9), (2, 22, 9), (22, 9), (1, 22, 0)])
def test_istft_raises_when_the_shape_is_not_a_spectrograms(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is not \\[1, 22, F\\]"):
        istft(np.zeros(shape, np.float32))


@pytest.mark.parametrize(("n_fft", "hop"), [(20, 20), (20, 6), (20, 0), (15, 5), (0, 5)])
def test_istft_raises_when_windows_do_not_add_up(n_fft: int, hop: int) -> None:
    with pytest.raises(ValueError, match=f"{hop} and {n_fft} do not"):
        istft(np.zeros((1, n_fft + 2, 9), np.float32), n_fft, hop)
