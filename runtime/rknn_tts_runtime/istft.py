"""From an iSTFTNet generator's raw output to samples, by the recipe of `torch.istft`.

The generator gives n_fft + 2 rows a column: exp of the first n_fft / 2 + 1 is the magnitude of each bin, sin of the
others its phase in radians. Then, with the periodic Hann window w and a frame of samples for each column f,

    frame_f = w irfft(magnitude_f e^(i phase_f))
    samples = (sum over f of frame_f, shifted by f hop) / (sum over f of w^2, shifted by f hop)

without the first and last n_fft / 2 samples (`center=True`). The imaginary parts of the lowest and the highest bin
count for nothing, as in every real inverse transform.

**Loudness.** The head in the common ONNX export of Kokoro is a transposed convolution that leaves the division out. The
divisor is 1.5 wherever n_fft / hop = 4 windows overlap, so that export is 1.5 times (3.5 dB) louder than torch. (Its
first n_fft / 2 samples it divides, by the w^2 of one frame alone: Kokoro's tenth is 2,500 times as loud as torch's.)
Torch's recipe, that of the original checkpoint, is the one used here.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.windows import FloatArray

KOKORO_N_FFT = 20
KOKORO_HOP = 5


def istft(spec_phase: npt.NDArray[np.floating[Any]], n_fft: int = KOKORO_N_FFT, hop: int = KOKORO_HOP) -> FloatArray:
    """Samples of a generator's raw output; the defaults are Kokoro's.

    Args:
        spec_phase: F columns of log magnitudes and phase arguments, `[1, n_fft + 2, F]`.
        n_fft: size of the transform in samples; even.
        hop: samples from a column to the next; divides `n_fft`, at most half of it.

    Returns:
        The samples `[hop * (F - 1)]`, float32.

    Raises:
        ValueError: the shape is another, or the windows of `hop` and `n_fft` do not add up to a signal.
    """
    frames = windowed_frames(spec_phase, n_fft, hop)
    if not frames.shape[1]:
        raise ValueError(f"a spectrogram of shape {list(spec_phase.shape)} is not [1, {n_fft + 2}, F]: no columns")
    inner = slice(n_fft // 2, n_fft // 2 + hop * (frames.shape[1] - 1))
    return overlap_added(frames, hop)[inner] / squares_added(n_fft, hop, frames.shape[1])[inner]


def windowed_frames(spec_phase: npt.NDArray[np.floating[Any]], n_fft: int, hop: int) -> FloatArray:
    """The windowed frames of samples `[n_fft, F]` that a generator's raw output `[1, n_fft + 2, F]` stands for.

    Raises:
        ValueError: the shape is another, or the windows of `hop` and `n_fft` do not add up to a signal.
    """
    if n_fft < 2 or n_fft % 2 or hop < 1 or n_fft % hop or 2 * hop > n_fft:
        raise ValueError(f"a hop must divide an even n_fft at least twice; {hop} and {n_fft} do not")
    if spec_phase.ndim != 3 or spec_phase.shape[:2] != (1, n_fft + 2):
        raise ValueError(f"a spectrogram of shape {list(spec_phase.shape)} is not [1, {n_fft + 2}, F]")
    spectrum = _spectrum(spec_phase[0].astype(np.float32, copy=False))
    return np.fft.irfft(spectrum, n_fft, axis=0).astype(np.float32, copy=False) * _hann(n_fft)[:, None]


def overlap_added(frames: FloatArray, hop: int) -> FloatArray:
    """Sum of frames `[n_fft, F]`, each shifted by `hop` against the one before: `[n_fft + hop * (F - 1)]`."""
    parts = frames.reshape(-1, hop, frames.shape[1])
    summed = np.zeros((hop, frames.shape[1] + len(parts) - 1), np.float32)
    for shift, part in enumerate(parts):
        summed[:, shift : shift + frames.shape[1]] += part
    return summed.T.reshape(-1)


def squares_added(n_fft: int, hop: int, columns: int) -> FloatArray:
    """Sum of the windows' squares of so many columns, what their `overlap_added` is divided by: of its shape."""
    window = _hann(n_fft)
    return overlap_added(np.broadcast_to((window * window)[:, None], (n_fft, columns)), hop)


def _hann(n_fft: int) -> FloatArray:
    """The periodic Hann window `[n_fft]`."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)).astype(np.float32)


def _spectrum(rows: FloatArray) -> npt.NDArray[np.complex64]:
    """Complex bins `[n_fft / 2 + 1, F]` of raw rows `[n_fft + 2, F]`."""
    bins = rows.shape[0] // 2
    magnitude, phase = np.exp(rows[:bins]), np.sin(rows[bins:])
    spectrum = np.empty(magnitude.shape, np.complex64)
    spectrum.real = magnitude * np.cos(phase)
    spectrum.imag = magnitude * np.sin(phase)
    return spectrum
