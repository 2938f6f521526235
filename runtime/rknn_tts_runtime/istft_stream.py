"""The inverse transform of `istft` over columns that come piece by piece.

A column adds to the n_fft samples that begin `hop` behind those of the column before. So with F columns there, the
samples before F hop are final: all but the closing n_fft / 2 - hop ones, which the end of the stream settles (the first
n_fft / 2 are none of the signal's, `center=True`). What is given in all is `istft` of all columns.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.istft import (
    KOKORO_HOP,
    KOKORO_N_FFT,
    overlap_added,
    squares_added,
    windowed_frames,
)
from rknn_tts_runtime.windows import FloatArray


class IstftStream:
    """Makes samples of columns while they come. One for each utterance."""

    def __init__(self, n_fft: int = KOKORO_N_FFT, hop: int = KOKORO_HOP) -> None:
        """
        Args:
            n_fft: size of the transform in samples; even.
            hop: samples from a column to the next; divides `n_fft`, at most half of it.

        Raises:
            ValueError: the windows of `hop` and `n_fft` do not add up to a signal.
        """
        self._n_fft, self._hop = n_fft, hop
        self._columns = 0
        self._given = n_fft // 2  # place of the next sample, where the first column's frame begins at 0
        self._held = windowed_frames(np.zeros((1, n_fft + 2, 0), np.float32), n_fft, hop)

    def push(self, columns: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """The samples that these columns settle.

        Args:
            columns: the next columns of log magnitudes and phase arguments, `[1, n_fft + 2, c]`; c may be 0.

        Returns:
            `[s]`, float32: `hop` a column once the first n_fft / 2 samples are past.

        Raises:
            ValueError: the columns have another shape.
        """
        frames = np.concatenate([self._held, windowed_frames(columns, self._n_fft, self._hop)], axis=1)
        self._columns += columns.shape[-1]
        samples = self._settled(frames, self._columns * self._hop)
        self._held = frames[:, max(0, frames.shape[1] - (self._n_fft // self._hop - 1)) :]
        return samples

    def finish(self) -> FloatArray:
        """The closing samples `[s]`: no column comes behind the last. None for a stream without columns."""
        return self._settled(self._held, self._n_fft // 2 + self._hop * (self._columns - 1))

    def _settled(self, frames: FloatArray, stop: int) -> FloatArray:
        """The samples from the next one to the place `stop`, of `frames`, the last of which is the last there is."""
        begin = (self._columns - frames.shape[1]) * self._hop
        inner = slice(self._given - begin, max(self._given, stop) - begin)
        if inner.start == inner.stop:
            return np.zeros(0, np.float32)
        self._given += inner.stop - inner.start
        return overlap_added(frames, self._hop)[inner] / squares_added(self._n_fft, self._hop, frames.shape[1])[inner]
