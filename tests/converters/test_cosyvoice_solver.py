from __future__ import annotations

from math import sqrt

import pytest

from converters.cosyvoice_solver import time_of


@pytest.mark.parametrize(("step", "time"), [(0, 0.0), (5, 1 - sqrt(0.5)), (10, 1.0)])
def test_times_are_the_solvers(step: int, time: float) -> None:
    assert time_of(step) == pytest.approx(time)
