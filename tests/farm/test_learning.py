from __future__ import annotations

from dataclasses import replace

import pytest

from farm.jobs import Kind
from farm.learning import learnt
from farm.outcomes import Ended, JobOutcome, MadeFile
from farm.rows import Row, Table
from tests.farm.piper_job import COMPILE as JOB

DONE = JobOutcome(
    job=JOB.id,
    ended=Ended.DONE,
    sentence=None,
    node="here",
    attempt=1,
    started_s=100.0,
    wall_s=18.0,
    cpu_s=17.0,
    peak_bytes=1_350_000_000,
    files=(MadeFile("a.rknn", "00", 30), MadeFile("a.json", "00", 12)),
    reused=("activations",),
)
ROW = Row(
    Kind.COMPILE, "piper", "decoder", "", "rk3588", "2.3.2", 63_201_294, 1, 1_350_000_000, 18.0, 18.0, 17.0, 17.0, 42
)


def test_what_was_done_is_a_row() -> None:
    assert learnt(Table(), [JOB], [DONE]) == Table((ROW,), learnt_until_s=100.0)


def test_outcomes_that_are_in_it_already_change_nothing() -> None:
    table = learnt(Table(), [JOB], [DONE])
    assert learnt(table, [JOB], [DONE]) == table


def test_second_outcome_of_the_sort_joins_the_row() -> None:
    other = replace(JOB, id="compile-2", checkpoint_bytes=63_104_526)
    later = replace(DONE, job="compile-2", started_s=200.0, wall_s=20.0, peak_bytes=1_400_000_000)
    (row,) = learnt(learnt(Table(), [JOB, other], [DONE]), [JOB, other], [DONE, later]).rows
    assert (row.times, row.wall_s, row.largest_wall_s, row.peak_bytes) == (2, 19.0, 20.0, 1_400_000_000)


@pytest.mark.parametrize(
    ("kind", "reused", "teaches"),
    [
        (Kind.COMPILE, ("build",), False),
        (Kind.COMPILE, ("export", "activations"), True),
        (Kind.EXPORT, ("export",), False),
        (Kind.EXPORT, ("prove",), True),
        (Kind.TWICE, ("build",), False),
        (Kind.PAGE, ("build", "export"), True),
    ],
)
def test_what_was_found_again_teaches_nothing(kind: Kind, reused: tuple[str, ...], teaches: bool) -> None:
    table = learnt(Table(), [replace(JOB, kind=kind)], [replace(DONE, reused=reused)])
    assert len(table.rows) == teaches


@pytest.mark.parametrize("ended", [Ended.FAILED, Ended.REFUSED, Ended.WAITING, Ended.LOST, Ended.DISK])
def test_what_was_not_done_teaches_nothing(ended: Ended) -> None:
    assert learnt(Table(), [JOB], [replace(DONE, ended=ended)]).rows == ()


def test_what_ended_for_memory_raises_the_least_and_no_mean() -> None:
    died = replace(DONE, ended=Ended.MEMORY, peak_bytes=9_000_000_000, wall_s=1.0, cpu_s=1.0, started_s=200.0)
    (row,) = learnt(learnt(Table(), [JOB], [DONE]), [JOB], [died]).rows
    assert row == replace(ROW, least_bytes=9_000_000_000)


def test_outcomes_of_no_job_of_the_plan_teach_nothing() -> None:
    assert learnt(Table(), [], [DONE]) == Table()


def test_sizes_and_widths_have_rows_of_their_own() -> None:
    jobs = [
        JOB,
        replace(JOB, id="high", checkpoint_bytes=113_895_201),
        replace(JOB, id="narrow", width="window-109"),
    ]
    outcomes = [replace(DONE, job=job.id) for job in jobs]
    rows = learnt(Table(), jobs, outcomes).rows
    assert {(row.width, row.checkpoint_bytes) for row in rows} == {(job.width, job.checkpoint_bytes) for job in jobs}
