"""Mel spectrograms, pitches and noise that are drawn, for gates: no speech comes with a vocoder's checkpoint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.hift_config import HARMONICS, HOP, MEL_FLOOR
from models.draws import uniform

FloatArray = NDArray[np.float32]

USUAL, QUIET, LOUD = -5.0, -9.0, -2.0
"""Means of log mel spectrograms: of speech, near silence (below the floor in many bands), and louder than speech."""

_SPREAD, _LOUDEST = 2.5, 2.0
"""Standard deviation of the levels, and what the loudest bands of speech reach."""

_TILT = 3.0
"""By how much the lowest band is louder than the highest, as in speech."""

_BANDS, _FRAMES = 7, 5
"""Bands and frames over which levels are alike."""

_LOWEST, _HIGHEST, _PERIOD = 90.0, 320.0, 37.0
"""Hz of the pitches, and the frames in which they go up and down."""

_GAP, _GAP_EVERY = 6, 24
"""Frames without a voice, and how often they come."""


def drawn_mel(bands: int, frames: int, seed: int, level: float = USUAL) -> FloatArray:
    """A log mel spectrogram [1, bands, frames] like speech's: smooth in both directions, louder below, floored."""
    drawn = uniform("mel", (bands + _BANDS - 1, frames + _FRAMES - 1), seed, -1.0, 1.0).astype(np.float64)
    smooth = np.lib.stride_tricks.sliding_window_view(drawn, (_BANDS, _FRAMES)).mean(axis=(2, 3))
    levels = _SPREAD * smooth / smooth.std() + level + np.linspace(_TILT, -_TILT, bands)[:, None] / 2
    return np.asarray(np.clip(levels, MEL_FLOOR, _LOUDEST), np.float32)[None]


def drawn_pitch(frames: int, seed: int) -> FloatArray:
    """A pitch [1, frames] in Hz like speech's, with frames that have no voice."""
    steps = np.arange(frames)
    middle, swing = (_LOWEST + _HIGHEST) / 2, (_HIGHEST - _LOWEST) / 2
    pitch = middle + swing * np.sin(2 * np.pi * steps / _PERIOD + seed)
    pitch[steps % _GAP_EVERY < _GAP] = 0
    return np.asarray(pitch, np.float32)[None]


def drawn_noise(frames: int, seed: int) -> FloatArray:
    """Standard normal numbers [1, 480 frames, 9]."""
    return np.random.default_rng(seed).standard_normal((1, frames * HOP, HARMONICS), np.float32)
