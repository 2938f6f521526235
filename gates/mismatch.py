"""Recognises how two arrays differ, for the sentence of a failed verdict. Decides nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_SHIFT = 16
"""Shifts that are tried, in elements: an off-by-one in a pad or a crop is a few at most."""

CLEARLY_SMALLER = 0.01
"""A gain or a shift explains a difference where it leaves less than this of its power (20 dB)."""


def explain(reference: NDArray[Any], measured: NDArray[Any]) -> str:
    """One clause that says how `measured` differs from `reference` (same shape, finite, not all zero).

    A gain or a shift where that explains nearly all of the difference, else the element that differs most; empty where
    they are identical.
    """
    signal = reference.astype(np.float64).reshape(-1)
    output = measured.astype(np.float64).reshape(-1)
    difference = np.abs(output - signal)
    if not difference.any():
        return ""
    gain = float(output @ signal) / float(signal @ signal)
    if _power(output - gain * signal) < CLEARLY_SMALLER * _power(difference):
        return f"the output is {gain:.4g} times the reference"
    for shift in range(1, min(LONGEST_SHIFT, signal.size - 1) + 1):
        rest, start = slice(shift, None), slice(-shift)
        for word, heard, meant in (("late", rest, start), ("early", start, rest)):
            # Over the same elements, or cutting off a bad edge would look like an explanation.
            if _power(output[heard] - signal[meant]) < CLEARLY_SMALLER * _power(output[heard] - signal[heard]):
                return f"the output comes {shift} element{'s' * (shift > 1)} too {word}"
    worst = int(np.argmax(difference))
    index = [int(i) for i in np.unravel_index(worst, reference.shape)]
    return f"the largest difference is {output[worst]:.6g} instead of {signal[worst]:.6g} at {index}"


def _power(array: NDArray[np.float64]) -> float:
    return float(array @ array)
