"""The arithmetic of a budget, with figures made by hand."""

from __future__ import annotations

import pytest

from engine.processes import Process
from rknn_tts.many_budget import Budget, expected_bytes, one_too_many, tree_bytes

GB = 10**9


@pytest.mark.parametrize(
    ("memory_gb", "jobs", "need_gb", "at_once"),
    [
        (16, 4, 1.5, 4),  # ten would fit, four processors
        (4, 8, 1.5, 2),  # 2.67 fit
        (3, 8, 1.5, 2),  # exactly two
        (2.9, 8, 1.5, 1),
        (1, 8, 1.5, 1),  # none fits: one is tried
        (16, 1, 1.5, 1),
    ],
)
def test_budget_lets_as_many_run_as_fit(memory_gb: float, jobs: int, need_gb: float, at_once: int) -> None:
    assert Budget(int(memory_gb * GB), jobs, int(need_gb * GB)).at_once == at_once


def test_budget_goes_by_the_largest_build_once_one_is_finished() -> None:
    budget = Budget(8 * GB, 8, expected_bytes=4 * GB)
    assert budget.at_once == 2
    first = budget.after_build(1 * GB)
    assert (first.need_bytes, first.at_once) == (1 * GB, 8)
    second = first.after_build(2 * GB).after_build(1 * GB)
    assert (second.need_bytes, second.at_once) == (2 * GB, 4)


def test_budget_expects_more_than_what_was_stopped_had_taken() -> None:
    budget = Budget(8 * GB, 8, expected_bytes=1 * GB).after_stop(3 * GB, 4)
    assert (budget.need_bytes, budget.at_once) == (3 * GB, 2)
    assert budget.after_build(2 * GB).need_bytes == 3 * GB


def test_budget_lets_no_more_run_than_went_on_when_one_was_stopped_until_a_build_tells() -> None:
    # Two were to fit. The first takes nearly all, and the second was stopped at its start: begun again, it would be so
    # again and again.
    budget = Budget(3 * GB, 2, expected_bytes=GB).after_stop(GB // 10, 1)
    assert budget.at_once == 1
    assert budget.after_stop(GB // 10, 0).at_once == 1
    assert budget.after_build(GB).at_once == 2
    assert budget.after_build(int(2.8 * GB)).at_once == 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], 1 * GB), ([1000], 1 * GB), ([40 * 10**6, 10**6], 1 * GB), ([63_200_000, 1], 1_580_000_000)],
)
def test_expected_bytes_goes_by_the_largest_checkpoint(sizes: list[int], expected: int) -> None:
    assert expected_bytes(sizes) == expected


def test_tree_bytes_adds_up_each_tree() -> None:
    #  9 -> 10 -> 11 -> 12;  9 -> 20;  9 -> 30 is no root
    processes = [
        Process(10, 9, 100, zombie=False),
        Process(20, 9, 7, zombie=False),
        Process(30, 9, 5000, zombie=False),
        Process(11, 10, 20, zombie=False),
        Process(12, 11, 3, zombie=False),
    ]
    assert tree_bytes(processes, [10, 20]) == {10: 123, 20: 7}
    assert tree_bytes([], [10]) == {10: 0}


def test_one_too_many_is_the_last_started_when_all_hold_more_than_there_is() -> None:
    assert one_too_many({10: 3, 20: 4, 15: 2}, 8) == 15
    assert one_too_many({10: 3, 20: 4, 15: 1}, 8) is None
    assert one_too_many({10: 9}, 8) == 10
    assert one_too_many({}, 0) is None
