"""Squared sines by three maps behind the folds, whatever gain they have: HardSwish, Softplus, HardSwish.

    H(x) = x (x + 3) / 6 = (x + 3/2)^2 / 6 - 3/8 for -3 <= x <= 3          HardSwish (ONNX operator specification)
    q = H(-3 w) = 3/2 (w - 1/2)^2 - 3/8                                     w in [0, 1]
    p = softplus(a q + b),   r = p + d
    sin^2(pi w) = k r^2 + e,   |e| <= 1.07e-5
    gain sin^2(pi w) = H(l r - 3/2) + 3/8,   l = sqrt(6 k gain)

The last map squares, and its argument takes the gain in: a sine of any gain reads the tensor as often as it has folds
and three times more, where the chain of HardSwishes (`surgery.sine_chains`) reads it once more for the gain and once
more for the square. What it costs: the 3/8 that are left over, the same for every channel, which what follows must take
away; and the zeros, where the error is as large as elsewhere, in proportion to the gain and not to the sine. Behind
w = 1 q is 0, and the sine as well.

The numbers: Gauss-Newton with Lawson's weights for the least largest error, with a one that fp16 holds.

l r - 3/2 is below 3 while gain is below `LARGEST_GAIN`; beyond, H is no parabola.

A board's HardSwish and Softplus are probably tables (its library has kernels named HardSwishLut and SoftplusLut); that
was not measured.
"""

from __future__ import annotations

from math import exp, log1p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surgery.sine_chains import HARD

Array = NDArray[Any]

STEEPNESS, BIAS, SHIFT, HEIGHT = -1.6689453125, -1.25285546, -0.25132823, 32.03641217
"""a, b, d and k."""

SOFT_BOUND = 1.07e-5
"""The largest error of sin^2, at most."""

LEFT_OVER = HARD**2 / 24
"""3/8: what HardSwish lacks of a square."""

_FURTHEST = log1p(exp(BIAS - STEEPNESS * LEFT_OVER)) + SHIFT
"""The largest r, where the sine is 1."""

LARGEST_GAIN = (1.5 * HARD / _FURTHEST) ** 2 / (6 * HEIGHT)
"""3.37."""


def soft_reaches(gain: ArrayLike) -> bool:
    """Whether gain * sin^2 can be computed so: a gain, or one for each channel, all above 0 and none too large."""
    gains = np.asarray(gain, np.float64)
    return bool(np.all(gains > 0) and np.all(gains <= LARGEST_GAIN))


def soft_offset(gain: ArrayLike) -> Array:
    """What the maps lack of gain * sin^2, float32, of the shape of `gain`: who subtracts it gets them bare.

    A layer behind takes it into its bias: its weights, summed over the taps, times this.

    Raises:
        ValueError: `soft_reaches` says no.
    """
    if not soft_reaches(gain):
        raise ValueError(f"a gain is not between 0 and {LARGEST_GAIN:.3g}, as far as the maps reach")
    return np.full(np.shape(gain), LEFT_OVER, np.float32)


def squaring(gain: ArrayLike) -> tuple[Array, Array]:
    """The scale and shift of the last map's argument."""
    scale = np.sqrt(6 * HEIGHT * np.asarray(gain, np.float64))
    return scale, scale * SHIFT - HARD / 2
