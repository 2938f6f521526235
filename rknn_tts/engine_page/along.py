"""How good a signal is along its time: the signal-to-noise ratio of short blocks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
        centre: the middle of each block, in seconds, or places of an axis.
        db: each block's figure.
    """

    centre: Figures
    db: Figures

    @property
    def worst(self) -> tuple[float, float] | None:
        """The smallest figure that is finite, in dB, and where it is; None where none is."""
        finite = np.isfinite(self.db)
        if not finite.any():
            return None
        at = int(np.argmin(np.where(finite, self.db, np.inf)))
        return float(self.db[at]), float(self.centre[at])


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


def snr_along_axis(reference: NDArray[Any], measured: NDArray[Any], blocks: int) -> Along:
    """The ratio of arrays along the last of their axes that is longer than 1, in at most so many blocks of places.

    As of `snr_along`; a block's middle is a place on that axis.

    Args:
        reference: [runs, ...].
        measured: the same.
        blocks: the most there are.

    Raises:
        ValueError: the shapes differ, or there is no axis behind the first.
    """
    if reference.shape != measured.shape or reference.ndim < 2:
        raise ValueError(f"arrays of {reference.shape} and {measured.shape} cannot be compared along an axis")
    longer = [i for i, size in enumerate(reference.shape) if size > 1 and i]
    axis = longer[-1] if longer else reference.ndim - 1
    others = tuple(i for i in range(reference.ndim) if i != axis)
    signal = reference.astype(np.float64)
    power = np.sum(signal**2, axis=others)
    noise = np.sum((measured.astype(np.float64) - signal) ** 2, axis=others)
    starts = np.arange(0, power.size, -(-power.size // blocks))
    ends = np.append(starts[1:], power.size)
    power, noise = np.add.reduceat(power, starts), np.add.reduceat(noise, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 10 * np.log10(power / noise)
    ratio[power == 0] = np.nan
    return Along((starts + ends - 1) / 2, ratio)


def _mean_power(samples: Figures, sample_rate: int, block_s: float) -> tuple[Figures, Figures]:
    """The middle of each block in seconds, and its mean square."""
    block = max(1, round(block_s * sample_rate))
    starts = np.arange(0, samples.size, block)
    if not starts.size:
        return np.zeros(0), np.zeros(0)
    ends = np.minimum(starts + block, samples.size)
    return (starts + ends) / 2 / sample_rate, np.add.reduceat(samples**2, starts) / (ends - starts)
