"""The signal-to-noise ratio of what converters measure and report; what decides is compared by `gates.snr`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECIMALS = 2
"""Of a ratio in dB that is reported."""


def snr_db(reference: NDArray[np.floating[Any]], measured: NDArray[np.floating[Any]]) -> float:
    """Signal-to-noise ratio of `measured` against `reference`, in dB, over all elements, in float64.

    Returns:
        inf where they are identical; NaN where nothing can be said: an all-zero or non-finite reference, a non-finite
        `measured`.

    Raises:
        ValueError: the shapes differ.
    """
    if reference.shape != measured.shape:
        raise ValueError(f"arrays of shape {reference.shape} and {measured.shape} cannot be compared")
    wanted = np.float64(reference)
    signal, noise = float(np.sum(np.square(wanted))), float(np.sum(np.square(np.float64(measured) - wanted)))
    if signal == 0 or not math.isfinite(signal) or not math.isfinite(noise):
        return math.nan
    return math.inf if noise == 0 else round(10 * math.log10(signal / noise), DECIMALS)
