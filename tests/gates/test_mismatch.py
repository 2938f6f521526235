"""Recognising how two arrays differ: a right hint where there is one, no wrong one elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gates.mismatch import explain

NOISE: NDArray[np.float64] = np.random.default_rng(0).standard_normal((2, 40))
PERIOD_NINE = np.sin(np.arange(80) * 2 * np.pi / 9).reshape(2, 40)


def changed(reference: NDArray[np.float64], index: tuple[int, int], value: float) -> NDArray[np.float64]:
    copy = reference.copy()
    copy[index] = value
    return copy


@pytest.mark.parametrize(
    ("reference", "measured", "expected"),
    [
        (NOISE, NOISE, ""),
        (NOISE, NOISE * 2, "the output is 2 times the reference"),
        (NOISE, NOISE * -0.25, "the output is -0.25 times the reference"),
        (NOISE, np.roll(NOISE, 1), "the output comes 1 element too late"),
        (NOISE, np.roll(NOISE, -2), "the output comes 2 elements too early"),
        (NOISE, changed(NOISE, (1, 3), 50.0), "the largest difference is 50 instead of"),
        # A shift by the period would only cut the bad element off.
        (PERIOD_NINE, changed(PERIOD_NINE, (0, 5), 9.0), "the largest difference is 9 instead of"),
        (np.ones((1, 1)), np.full((1, 1), 3.0), "the output is 3 times the reference"),
    ],
)
def test_explain_names_the_difference_when_it_is_recognised(
    reference: NDArray[np.float64], measured: NDArray[np.float64], expected: str
) -> None:
    assert explain(reference, measured).startswith(expected)
    assert bool(explain(reference, measured)) == bool(expected)


def test_explain_gives_the_index_when_one_element_differs() -> None:
    assert explain(NOISE, changed(NOISE, (1, 3), 50.0)).endswith("at [1, 3]")
