"""How far a site is folded, and where."""

from __future__ import annotations

import numpy as np
import pytest

from surgery.sine_forms import folds_for, reach_of


@pytest.mark.parametrize(
    ("reach", "centres"),
    [(0.01, []), (1, []), (1.01, [1]), (2, [1]), (2.5, [2, 1]), (8, [4, 2, 1]), (8.1, [8, 4, 2, 1]),
     (48.8, [32, 16, 8, 4, 2, 1])],
)  # fmt: skip
def test_folds_halve_the_reach_until_it_is_one(reach: float, centres: list[float]) -> None:
    made = folds_for(reach)
    assert [float(centre) for centre in made] == centres
    furthest = reach
    for centre in centres:
        furthest = max(centre, furthest - centre)
    assert furthest <= 1


def test_channel_is_not_folded_when_it_does_not_reach_so_far() -> None:
    made = folds_for([0.5, 1.5, 3.0, 8.0])
    assert [centre.tolist() for centre in made] == [[0, 0, 0, 4], [0, 0, 2, 2], [0, 1, 1, 1]]


def test_reach_is_the_largest_argument_in_units_of_pi_with_a_margin() -> None:
    arguments = [np.array([[[0.0, -2 * np.pi], [1.0, 1.0]]]), np.array([[[np.pi, 0.0, 0.0], [0.0, 3 * np.pi, 0.0]]])]
    assert reach_of(arguments, margin=1.0) == pytest.approx(3)
    assert reach_of(arguments) == pytest.approx(3.75)
    assert reach_of(arguments, margin=1.0, by_channel=True) == pytest.approx(np.array([2, 3]))


@pytest.mark.parametrize("arguments", [[], [np.array([[np.nan]])], [np.array([[np.inf]])]])
def test_reach_raises_when_there_is_none(arguments: list[np.ndarray]) -> None:  # type: ignore[type-arg] # any dtype
    with pytest.raises(ValueError, match="finite"):
        reach_of(arguments)
