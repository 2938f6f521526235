"""The figures of `contracts.quality.FIGURES`: plain arrays in, float64 values out, one a run or one a vector.

Rows and columns: a spectrogram [frames, bins], logits [positions, vocabulary], embeddings [N, C]. Both arrays have the
same shape, are finite and not empty, and the reference is not all zero: `gates.quality` sees to it.

**Which mel L1.** The reference tells a "mel L1" of 0.17048 beside a cosine of 0.998754, and a "mel MAE" of 0.016937
beside 0.999989. A cosine c means a relative error of sqrt(2 (1 - c)) in the power: 0.0499 and 0.0047. Both pairs are
3.4 to 3.6 apart, so both are one measure, and no relative one, which could not be so far above the root mean square:
the mean absolute difference of log mel values. That is `mel_l1`. Weights that are random have no such scale;
`mel_l1_relative` is the one to bound there.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LSD_N_FFT = 1920
LSD_HOP = 480
"""Samples of a frame, and from one to the next: CosyVoice's own analysis at 24 kHz (`n_fft`, `win_size` and `hop_size`
of its mel spectrogram, cosyvoice2.yaml), with its Hann window."""

LSD_RANGE_DB = 80.0
"""Below the reference's loudest bin, what counts for silence on both sides (librosa's `power_to_db`, `top_db`)."""


def mel_l1(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """mean |measured - reference|, [1]; see above."""
    return np.array([np.mean(np.abs(_wide(measured) - _wide(reference)))])


def mel_l1_relative(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """sum |measured - reference| / sum |reference|, [1]."""
    owed = _wide(reference)
    return np.array([np.sum(np.abs(_wide(measured) - owed)) / np.sum(np.abs(owed))])


def whole_cosine(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """The cosine of the angle between the two as one long vector each, [1]."""
    return row_cosines(reference.reshape(1, -1), measured.reshape(1, -1))


def row_cosines(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """The cosine of the angle between each row and its own, [rows]; NaN where a row is all zero."""
    first, second = _unit(reference), _unit(measured)
    # 1 - |a - b|^2 / 2 of unit vectors is their product, and keeps the digits near 1 that the product loses.
    return np.asarray(1.0 - np.sum(np.square(first - second), axis=1) / 2)


def same_largest(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """100 for each row whose largest number stands in the same place, else 0, [rows]; of equal ones the first."""
    return np.where(np.argmax(reference, axis=1) == np.argmax(measured, axis=1), 100.0, 0.0)


def log_spectral_distance(reference: NDArray[Any], measured: NDArray[Any]) -> FloatArray:
    """The log-spectral distance of two waveforms in dB, [1].

        P = 20 log10 max(|STFT|, floor)            floor: `LSD_RANGE_DB` below the reference's loudest bin
        distance = mean over frames of sqrt(mean over bins of (P_measured - P_reference)^2)

    The STFT has frames of `LSD_N_FFT` samples under a Hann window, `LSD_HOP` apart, none of them padded; zeros follow
    a waveform that is shorter than one, and samples behind the last whole frame are left out.
    """
    owed, got = _magnitudes(reference), _magnitudes(measured)
    floor = max(float(owed.max()) * 10 ** (-LSD_RANGE_DB / 20), sys.float_info.min)
    levels = [20 * np.log10(np.maximum(side, floor)) for side in (owed, got)]
    return np.array([np.mean(np.sqrt(np.mean(np.square(levels[1] - levels[0]), axis=1)))])


def _magnitudes(wave: NDArray[Any]) -> FloatArray:
    """[frames, bins]."""
    samples = np.pad(_wide(wave).reshape(-1), (0, max(0, LSD_N_FFT - wave.size)))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(LSD_N_FFT) / LSD_N_FFT)
    frames = np.lib.stride_tricks.sliding_window_view(samples, LSD_N_FFT)[::LSD_HOP]
    return np.abs(np.fft.rfft(frames * window, axis=1))


def _unit(rows: NDArray[Any]) -> FloatArray:
    """Each row at length 1; NaN where it has none."""
    wide = _wide(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        wide = wide / np.max(np.abs(wide), axis=1, keepdims=True)  # squares of what is large or small stay finite
        return np.asarray(wide / np.sqrt(np.sum(np.square(wide), axis=1, keepdims=True)))


def _wide(array: NDArray[Any]) -> FloatArray:
    return np.asarray(array, np.float64)
