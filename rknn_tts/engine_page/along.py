"""How good a signal is along its time: the signal-to-noise ratio of short blocks of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK_S = 0.02
"""Seconds of a block: some frames of a vocoder, shorter than a phoneme."""

Samples = NDArray[np.float32]
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class Along:
    """Figures of blocks along a signal.

    Attributes:
        centre_s: the middle of each block, in seconds.
        db: each block's figure.
    """

    centre_s: Figures
    db: Figures

    @property
    def worst(self) -> tuple[float, float] | None:
        """The smallest figure that is finite, in dB, and where it is, in seconds; None where none is."""
        finite = np.isfinite(self.db)
        if not finite.any():
            return None
        at = int(np.argmin(np.where(finite, self.db, np.inf)))
        return float(self.db[at]), float(self.centre_s[at])


def snr_along(reference: Samples, measured: Samples, sample_rate: int, block_s: float = BLOCK_S) -> Along:
    """The signal-to-noise ratio of `measured` against `reference`, block by block; a last part of a block is one too.

    inf where the two are identical, NaN where the reference is silent.

    Args:
        reference: samples [N].
        measured: samples [N].
        sample_rate: samples per second.
        block_s: seconds of a block.

    Raises:
        ValueError: the shapes differ.
    """
    if reference.shape != measured.shape:
        raise ValueError(f"signals of {reference.size} and {measured.size} samples cannot be compared")
    signal = reference.astype(np.float64)
    centres, power = _mean_power(signal, sample_rate, block_s)
    _, noise = _mean_power(measured.astype(np.float64) - signal, sample_rate, block_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 10 * np.log10(power / noise)
    ratio[power == 0] = np.nan
    return Along(centres, ratio)


def level_along(samples: Samples, sample_rate: int, block_s: float = BLOCK_S) -> Along:
    """The mean power of `samples` [N] by block, 0 dB a constant of full scale; -inf where it is silent."""
    centres, power = _mean_power(samples.astype(np.float64), sample_rate, block_s)
    with np.errstate(divide="ignore"):
        return Along(centres, 10 * np.log10(power))


def _mean_power(samples: Figures, sample_rate: int, block_s: float) -> tuple[Figures, Figures]:
    """The middle of each block in seconds, and its mean square."""
    block = max(1, round(block_s * sample_rate))
    starts = np.arange(0, samples.size, block)
    if not starts.size:
        return np.zeros(0), np.zeros(0)
    ends = np.minimum(starts + block, samples.size)
    return (starts + ends) / 2 / sample_rate, np.add.reduceat(samples**2, starts) / (ends - starts)
