"""The polynomials, against the sine itself, at other points than those they were found on."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from surgery import sine_coefficients
from surgery.sine_coefficients import MIDDLE, WAVE, Approximated, coefficients, minimax

Factors = Callable[[float], tuple[float, float]]

KINDS: dict[str, tuple[Approximated, Factors, float]] = {
    "middle": (MIDDLE, lambda s: (s, s * s), 0.5),
    "wave": (WAVE, lambda p: (p * (1 - p) * (1 + p), p * p), 0.99999),
}
"""What is approximated; the zeros and the polynomial's argument, by the angle in units of pi; how far that goes."""


def relative_errors(name: str, degree: int) -> list[float]:
    """Of the whole product against math.sin, at 2 999 angles."""
    of, factors, furthest = KINDS[name]
    numbers = coefficients(of, degree)
    errors = []
    for step in range(1, 3000):
        angle = furthest * step / 3000
        zeros, power = factors(angle)
        errors.append(zeros * sum(c * power**n for n, c in enumerate(numbers)) / math.sin(math.pi * angle) - 1)
    return errors


@pytest.mark.parametrize(
    ("name", "degree"), [(name, degree) for name, (of, _, _) in KINDS.items() for degree, _ in of.bounds]
)
def test_polynomial_keeps_its_bound_and_nearly_takes_it(name: str, degree: int) -> None:
    bound = KINDS[name][0].bound(degree)
    worst = max(map(abs, relative_errors(name, degree)))
    assert 0.9 * bound < worst <= bound


@pytest.mark.parametrize("name", KINDS)
def test_error_takes_its_largest_size_with_every_sign_when_it_is_the_least(name: str) -> None:
    errors = np.array(relative_errors(name, 2))
    largest = np.abs(errors).max()
    signs = np.sign(errors[np.abs(errors) > 0.98 * largest])
    turns = 1 + np.count_nonzero(np.diff(signs))
    assert turns == 4


def test_minimax_is_the_known_line_when_the_root_is_approximated() -> None:
    made = minimax(np.exp, 0, 0.0, 1.0)  # the best constant c of least |c / f - 1|: both ends are as far away
    assert made.coefficients[0] == pytest.approx(2 * math.e / (1 + math.e))
    assert made.error == pytest.approx((math.e - 1) / (math.e + 1))


def test_coefficients_raise_when_the_bound_is_not_reached() -> None:
    with pytest.raises(ArithmeticError, match="the polynomial of degree 2 has an error"):
        coefficients(Approximated(MIDDLE.function, 0.25, ((2, 1.0e-4),)), 2)


def test_coefficients_raise_when_no_bound_is_stated() -> None:
    with pytest.raises(KeyError):
        coefficients(MIDDLE, 7)


def test_bound_is_none_when_the_search_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = sine_coefficients.Polynomial((0.0,), math.nan)
    monkeypatch.setattr(sine_coefficients, "minimax", lambda *_: lost)
    with pytest.raises(ArithmeticError, match="nan"):
        coefficients(Approximated(MIDDLE.function, 0.2, ((1, 1.0),)), 1)
