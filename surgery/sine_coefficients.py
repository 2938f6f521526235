"""Polynomials for the sine, of the least relative error (minimax), found by Remez' exchange.

Each stands beside factors that are zero where the sine is, so that the product keeps its relative accuracy there:

    middle  sin(pi s) = s P(s^2)           s in [-1/2, 1/2]
    wave    sin(pi p) = p (1 - p^2) R(p^2) p in [-1, 1]

The polynomial of degree n whose weighted error takes its largest size n + 2 times, with alternating signs, is the best
(Chebyshev); Remez, Comptes rendus 199 (1934), moves n + 2 points until they are those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

_GRID = 20001
"""Points on which the error is looked at: between two of them it changes by less than a thousandth of itself."""

_EXCHANGES = 40
"""It converges quadratically: five exchanges do."""


@dataclass(frozen=True)
class Polynomial:
    """A polynomial: its coefficients from the constant up, and its largest relative error."""

    coefficients: tuple[float, ...]
    error: float


def minimax(function: Callable[[Array], Array], degree: int, low: float, high: float) -> Polynomial:
    """The polynomial of `degree` with the least relative error against `function`, positive on [low, high]."""
    grid = low + (high - low) * (1 - np.cos(np.pi * np.arange(_GRID) / (_GRID - 1))) / 2
    wanted = function(grid)
    powers = grid[:, None] ** np.arange(degree + 1)
    at = np.linspace(0, _GRID - 1, degree + 2).astype(int)
    signs = (-1.0) ** np.arange(degree + 2)
    for _ in range(_EXCHANGES):
        system = np.column_stack([powers[at] / wanted[at, None], signs])
        coefficients = np.linalg.solve(system, np.ones(degree + 2))[:-1]
        error = powers @ coefficients / wanted - 1
        moved = _alternating(error, degree + 2)
        if moved is None or np.array_equal(moved, at):
            break
        at = moved
    return Polynomial(tuple(float(number) for number in coefficients), float(np.abs(error).max()))


def _alternating(error: Array, count: int) -> NDArray[np.intp] | None:
    """Where `error` is largest between two of its zeros: `count` adjacent such places; None where they are fewer."""
    edges = np.flatnonzero(np.diff(np.sign(error))) + 1
    stretches = np.split(np.arange(len(error)), edges)
    peaks = [int(stretch[np.argmax(np.abs(error[stretch]))]) for stretch in stretches]
    while len(peaks) > count:
        peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
    return np.array(peaks) if len(peaks) == count else None


def _middle(z: Array) -> Array:
    return np.pi * np.sinc(np.sqrt(z))


def _wave(z: Array) -> Array:
    p = np.sqrt(z)
    near, far = np.minimum(p, 0.5), np.maximum(p, 0.5)
    return np.where(p < 0.5, np.pi * np.sinc(near) / (1 - near**2), np.pi * np.sinc(1 - far) / (far * (1 + far)))


@dataclass(frozen=True)
class Approximated:
    """A function, positive from 0 to `high`, and the largest relative error that is let through, by degree."""

    function: Callable[[Array], Array]
    high: float
    bounds: tuple[tuple[int, float], ...]

    def bound(self, degree: int) -> float:
        """The relative error that the polynomial of `degree` has at most."""
        return dict(self.bounds)[degree]


MIDDLE = Approximated(_middle, 0.25, ((1, 7.3e-3), (2, 1.1e-4), (3, 9.4e-7)))
"""P for sin(pi s) = s P(s^2)."""

WAVE = Approximated(_wave, 1.0, ((2, 8.7e-4), (3, 2.1e-5), (4, 3.4e-7)))
"""R for sin(pi p) = p (1 - p^2) R(p^2)."""


@lru_cache
def coefficients(of: Approximated, degree: int) -> tuple[float, ...]:
    """The best polynomial of `degree`, from the constant up.

    Raises:
        ArithmeticError: what was found is worse than the bound that is stated.
        KeyError: no bound is stated for the degree.
    """
    bound = of.bound(degree)
    made = minimax(of.function, degree, 0.0, of.high)
    if not made.error <= bound:
        raise ArithmeticError(f"the polynomial of degree {degree} has an error of {made.error}, not of {bound} at most")
    return made.coefficients
