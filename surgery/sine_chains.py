"""Squared sines by quadratic maps, each a HardSwish, which the compiler fuses with the convolution before it.

    H(x) = x (x + 3) / 6 for -3 <= x <= 3                          HardSwish (ONNX operator specification)
    h_1  = H(-3 w) = -3/2 w (1 - w),   h_(i+1) = H(a_i h_i)
    sin^2(pi w) = K h_n^2, w in [0, 1]

Two maps are a polynomial of degree 2 in w (1 - w), three of degree 4, four of degree 8, always without a constant: h is
zero where the sine is, and 0 behind w = 1. A map reads the tensor once; a step of Horner's rule is an affine step and a
product, which reads two (modelled ms on rk3588, [1, 128, 1200]: .086 and .167, measured, 2.3.2).

The numbers: Gauss-Newton with Lawson's weights for the least relative error of h. Then, for one and two maps behind the
first, among those nearby that fp16 holds, and whose unit c = pi / K is held by fp16 as well: Snake in units of c / pi
needs no step for its scale nor for its gain, and folds at multiples of c, which are exact. In fp16 -3 / c is off by
1e-6 at two maps, where every other such unit nearby is off by more, or its chain is.

A board's HardSwish may be a table; that was not measured. The square ahead of everything else makes what a table adds
near zero harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi

HARD = 3.0
"""Where HardSwish begins and ends: it is 0 below -3, and its argument above 3."""


@dataclass(frozen=True)
class Chain:
    """The maps behind the first.

    Attributes:
        scales: a_1, a_2, ...
        gain: K.
        unit: c: w is u / c for a u that is folded at multiples of c.
        bound: the largest relative error of K h^2 against sin^2, at most.
    """

    scales: tuple[float, ...]
    gain: float
    unit: float
    bound: float


_TWO, _THREE = 0.861328125, 0.416259765625

CHAINS = {
    1: Chain((-2.1875,), pi / _TWO, _TWO, 5.5e-3),
    2: Chain((-0.474853515625, 6.421875), pi / _THREE, _THREE, 6.5e-5),
    3: Chain((0.12980703, -22.45615507, 0.92289919), 6.22817846**2, 0.0809326171875, 4.1e-6),
}
"""By the degree that a caller asks for: maps behind the first."""

TURNED = {
    **{degree: replace(chain, unit=1.0) for degree, chain in CHAINS.items()},
    2: Chain((-0.475830078125, 6.40234375), 2.75**2, 1.0, 5.1e-5),
}
"""The same for an argument in another unit, which is counted in half turns then: 1 and its fold constants are exact,
and a rounding near them is 1.2 times finer, 1.6 dB of a square. Of two maps, those among their neighbours whose gain
has a root that fp16 holds."""

UNIT = _THREE
"""Of the degree that the pass takes by itself."""
