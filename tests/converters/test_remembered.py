from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from converters.remembered import Remembered
from converters.stages import Array


class Counting:
    """y = 2 x, and how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        self.runs += 1
        return {"y": 2 * feed["x"]}


def feed(*values: float, dtype: type = np.float32) -> dict[str, Array]:
    return {"x": np.array(values, dtype)}


def test_the_same_numbers_run_once() -> None:
    counting = Counting()
    session = Remembered(counting, most=2)
    for _ in range(3):
        np.testing.assert_array_equal(session(feed(1, 2))["y"], [2, 4])
    assert counting.runs == 1


@pytest.mark.parametrize(
    "other",
    [feed(1, 3), feed(1), {"x": np.ones((1, 1), np.float32)}, feed(1, 2, dtype=np.float64), feed(-0.0, 2)],
    ids=["value", "length", "shape", "type", "sign of zero"],
)
def test_other_numbers_run_by_themselves(other: dict[str, Array]) -> None:
    counting = Counting()
    session = Remembered(counting, most=9)
    session(feed(0.0, 2))
    session(feed(1, 2))
    np.testing.assert_array_equal(session(other)["y"], 2 * other["x"])
    assert counting.runs == 3


def test_no_more_is_kept_than_is_asked_for() -> None:
    counting = Counting()
    session = Remembered(counting, most=1)
    for values in ((1, 2), (3, 4), (3, 4), (1, 2)):
        session(feed(*values))
    assert counting.runs == 3


def test_what_a_caller_adds_or_removes_is_not_remembered() -> None:
    session = Remembered(Counting(), most=1)
    session(feed(1, 2)).clear()
    session(feed(1, 2)).clear()
    np.testing.assert_array_equal(session(feed(1, 2))["y"], [2, 4])
