"""Spectrograms as they are looked at: levels in dB, in steps that the eye does not miss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 512
"""Samples of a Hann window: 23 ms at 22050 Hz, so that pitch shows as lines and consonants as columns."""

MOST_COLUMNS = 420
"""Of a picture: more than that does not show at the width of a page."""

BANDS = 128
"""Rows of a picture, each of two bins."""

RANGE_DB = 80.0
"""Between black and the loudest: what 16 bits of speech have above their noise."""

STEP_DB = 2.0
"""Levels are rounded to this, which is not seen."""

Samples = NDArray[np.float32]
Levels = NDArray[np.float32]


@dataclass(frozen=True)
class Spectrogram:
    """Levels over time and frequency.

    Attributes:
        levels_db: [bands, columns], the lowest frequency first, 0 dB a sine of full scale.
        duration_s: what all columns take together.
        highest_hz: the frequency above the highest band.
    """

    levels_db: Levels
    duration_s: float
    highest_hz: float


def spectrogram(samples: Samples, sample_rate: int) -> Spectrogram:
    """The spectrogram of `samples` [N], at most `MOST_COLUMNS` wide; a column is the mean power of what it stands for.

    Levels below -200 dB are -200 dB.
    """
    hop = WINDOW // 2
    padded = np.pad(np.asarray(samples, np.float64), (hop, max(hop, WINDOW - samples.size)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::hop]
    window = np.hanning(WINDOW + 1)[:WINDOW]
    # A sine of full scale gives |X| = sum(window) / 2 at its bin.
    power = np.abs(np.fft.rfft(frames * window, axis=1) / (window.sum() / 2)) ** 2
    power = power[:, : 2 * BANDS].reshape(len(power), BANDS, 2).max(axis=2)
    together = -(-len(power) // MOST_COLUMNS)
    starts = np.arange(0, len(power), together)
    counts = np.diff([*starts, len(power)])
    columns = np.add.reduceat(power, starts, axis=0) / counts[:, None]
    levels = 10 * np.log10(np.maximum(columns.T, 1e-20))
    return Spectrogram(levels.astype(np.float32), samples.size / sample_rate, sample_rate / 2)


def within(levels_db: Levels, top_db: float) -> Levels:
    """`levels_db` between `top_db` and what lies `RANGE_DB` below it."""
    return np.clip(levels_db, top_db - RANGE_DB, top_db)


def stepped(levels_db: Levels, step_db: float) -> Levels:
    """`levels_db` rounded to steps: a picture of few colours takes half the bytes."""
    return np.asarray(np.round(levels_db / step_db) * step_db, np.float32)


def loudest_db(*of: Spectrogram) -> float:
    """The largest level of all, a whole step."""
    return float(np.ceil(max(float(one.levels_db.max()) for one in of) / STEP_DB) * STEP_DB)
