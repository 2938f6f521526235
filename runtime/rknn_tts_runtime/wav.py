"""Writes samples as a WAV file.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.whole_file import write_whole

FULL_SCALE = 32767
"""What 1.0 becomes. -1.0 becomes its negative, so that nothing is shifted."""


def write_wav(path: str | os.PathLike[str], samples: npt.NDArray[np.floating[Any]], sample_rate: int) -> int:
    """Write `samples` as 16-bit mono to `path`; the file appears whole or not at all.

    Args:
        path: the file; one that is there is replaced.
        samples: `[S]`, in -1 to 1.
        sample_rate: samples per second.

    Returns:
        How many samples were beyond -1 or 1, and are clipped to it.

    Raises:
        ValueError: `samples` has another number of axes or values that are not finite, or the rate is not positive.
        OSError: the folder cannot be written, or the disk is full; an earlier file is as it was.
    """
    if samples.ndim != 1:
        raise ValueError(f"samples of shape {list(samples.shape)} are not one channel [S]")
    if sample_rate < 1:
        raise ValueError(f"a sample rate of {sample_rate} is not positive")
    unfinite = samples.size - int(np.count_nonzero(np.isfinite(samples)))
    if unfinite:
        raise ValueError(f"{unfinite} of {samples.size} samples are not finite")
    clipped = int(np.count_nonzero(np.abs(samples) > 1))
    levels = np.rint(np.clip(samples, -1, 1).astype(np.float32) * FULL_SCALE).astype("<i2")
    write_whole(Path(path), _mono(levels.tobytes(), sample_rate))
    return clipped


def _mono(levels: bytes, sample_rate: int) -> bytes:
    """A WAV file of 16-bit little-endian levels."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes(levels)
    return file.getvalue()
