from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from farm.jobs import Job, Kind
from farm.needs import LEAST_LIMIT_S, MARGIN, UNMEASURED_LIMIT_S, needs_of, needs_of_all
from farm.rows import SEED, Row, Table, read_table
from rknn_tts import many_budget
from tests.farm.piper_job import COMPILE as JOB

MB = 10**6
MEDIUM, HIGH, X_LOW = 63_201_294, 113_895_201, 20_628_813

ROW = Row(
    kind=Kind.COMPILE,
    family="piper",
    stage="decoder",
    width="",
    target="rk3588",
    toolkit="2.3.2",
    checkpoint_bytes=MEDIUM,
    times=3,
    peak_bytes=1_000 * MB,
    wall_s=20.0,
    largest_wall_s=300.0,
    cpu_s=18.0,
    largest_cpu_s=19.0,
    disk_bytes=200 * MB,
    cache_bytes=100 * MB,
)


def row(**changes: Any) -> Row:
    return replace(ROW, **changes)


def test_own_row_gives_figures_with_their_margins() -> None:
    needs = needs_of(JOB, Table((ROW,)))
    assert needs.memory_bytes == round(MARGIN * 1_000 * MB)
    assert needs.disk_bytes == round(MARGIN * 300 * MB)
    assert (needs.expected_s, needs.wall_s) == (20.0, 1200.0)  # four times the longest
    assert (needs.left_bytes, needs.cache_bytes) == (200 * MB, 100 * MB)
    assert needs.measured


def test_limit_is_never_shorter_than_the_least() -> None:
    assert needs_of(JOB, Table((row(largest_wall_s=20.0),))).wall_s == LEAST_LIMIT_S


def test_what_died_for_memory_asks_for_more_than_it_held() -> None:
    needs = needs_of(JOB, Table((row(least_bytes=3_000 * MB),)))
    assert needs.memory_bytes == round(MARGIN * 3_000 * MB)


def test_what_only_ever_died_asks_for_more_than_it_held_and_is_not_measured() -> None:
    needs = needs_of(JOB, Table((row(times=0, peak_bytes=0, wall_s=0.0, least_bytes=9_000 * MB),)))
    assert needs.memory_bytes == round(MARGIN * 9_000 * MB)
    assert needs.wall_s == UNMEASURED_LIMIT_S
    assert not needs.measured


def test_job_of_no_row_needs_what_many_voices_expect_of_its_checkpoint() -> None:
    for size in (0, MEDIUM, 1_000 * MB):
        needs = needs_of(replace(JOB, checkpoint_bytes=size), Table())
        assert needs.memory_bytes == many_budget.expected_bytes([size])
        assert not needs.measured
        assert needs.wall_s >= UNMEASURED_LIMIT_S


def test_page_of_no_row_needs_nothing_of_the_checkpoint() -> None:
    page = replace(JOB, kind=Kind.PAGE, checkpoint_bytes=1_000 * MB)
    assert needs_of(page, Table()).memory_bytes == many_budget.expected_bytes([0])


def test_rows_of_other_stages_and_kinds_tell_nothing() -> None:
    table = Table((row(stage="duration_encoder"), row(kind=Kind.PAGE), row(family="inflect")))
    assert needs_of(JOB, table) == needs_of(JOB, Table())


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (row(target="rk3566"), row(checkpoint_bytes=HIGH)),
        (row(toolkit="2.4.0"), row(target="rk3566")),
        (row(checkpoint_bytes=HIGH), row(width="window-109")),
        (row(checkpoint_bytes=HIGH), row(checkpoint_bytes=HIGH * 4)),
        (row(target="rk3566", toolkit="2.4.0"), row(width="window-109")),
        (row(checkpoint_bytes=HIGH), row(checkpoint_bytes=0)),
    ],
)
def test_nearest_row_tells_when_the_job_has_none(near: Row, far: Row) -> None:
    needs = needs_of(JOB, Table((replace(far, peak_bytes=77 * MB), replace(near, peak_bytes=500 * MB))))
    assert needs.memory_bytes == round(MARGIN * 500 * MB)
    assert not needs.measured


def test_largest_figures_count_of_rows_that_are_as_near() -> None:
    rows = (
        row(target="rk3566", peak_bytes=500 * MB, wall_s=9.0),
        row(target="rk3562", peak_bytes=400 * MB, wall_s=11.0),
    )
    needs = needs_of(JOB, Table(rows))
    assert (needs.memory_bytes, needs.expected_s) == (round(MARGIN * 500 * MB), 11.0)


def test_larger_checkpoint_needs_more_by_its_size_to_the_power_of_three_halves() -> None:
    smaller = row(wall_s=10.0, disk_bytes=100 * MB)
    needs = needs_of(replace(JOB, checkpoint_bytes=HIGH), Table((smaller,)))
    times = 1.802102 * math.sqrt(1.802102)  # 113,895,201 by 63,201,294
    assert needs.memory_bytes == pytest.approx(MARGIN * times * 1_000 * MB, rel=1e-6)
    assert needs.expected_s == pytest.approx(times * 10.0)
    assert needs.left_bytes == pytest.approx(times * 100 * MB, rel=1e-6)


def test_larger_checkpoint_needs_no_more_than_its_size_alone_would_say() -> None:
    tiny = row(
        checkpoint_bytes=60_000, peak_bytes=300 * MB
    )  # a voice of the tests; 1,053 times as large would be 316 GB
    needs = needs_of(JOB, Table((tiny,)))
    assert needs.memory_bytes == round(MARGIN * many_budget.expected_bytes([MEDIUM]))


def test_smaller_checkpoint_needs_no_less_than_the_row_says() -> None:
    needs = needs_of(replace(JOB, checkpoint_bytes=X_LOW), Table((ROW,)))
    assert (needs.memory_bytes, needs.expected_s) == (round(MARGIN * 1_000 * MB), 20.0)


def test_checkpoint_of_unknown_size_needs_what_a_row_of_any_size_says() -> None:
    assert needs_of(replace(JOB, checkpoint_bytes=0), Table((ROW,))).memory_bytes == round(MARGIN * 1_000 * MB)


def test_what_is_made_twice_needs_what_its_export_and_its_compile_do() -> None:
    export = row(kind=Kind.EXPORT, target=None, peak_bytes=1_500 * MB, wall_s=22.0, largest_wall_s=200.0)
    needs = needs_of(replace(JOB, kind=Kind.TWICE), Table((ROW, export)))
    assert needs.memory_bytes == round(MARGIN * 1_500 * MB)
    assert (needs.expected_s, needs.wall_s) == (42.0, 2000.0)
    assert needs.disk_bytes == 2 * round(MARGIN * 300 * MB)
    assert (needs.left_bytes, needs.cache_bytes) == (0, 0)  # all that it makes is removed


def test_own_row_of_what_is_made_twice_counts_before_those_of_its_parts() -> None:
    assert needs_of(replace(JOB, kind=Kind.TWICE), Table((row(kind=Kind.TWICE, wall_s=55.0),))).expected_s == 55.0


def test_needs_of_all_are_those_of_each() -> None:
    table = Table((ROW, row(target="rk3566", wall_s=9.0), row(kind=Kind.PAGE, wall_s=2.0)))
    jobs = [
        JOB,
        replace(JOB, id="compile-2"),
        replace(JOB, target="rk3566"),
        replace(JOB, checkpoint_bytes=HIGH),
        replace(JOB, kind=Kind.PAGE),
        replace(JOB, kind=Kind.TWICE),
        replace(JOB, stage="duration_encoder"),
        replace(JOB, family="inflect"),
        replace(JOB, width="window-109"),
        replace(JOB, toolkit="2.5.0"),
    ]
    needs = needs_of_all(jobs, table)
    assert needs == [needs_of(job, table) for job in jobs]
    assert len(set(needs)) > 5


def test_measured_rows_would_each_have_had_enough_memory_by_the_others_of_their_width() -> None:
    rows = read_table(SEED).rows
    foretold = 0
    for left_out in rows:
        others = tuple(row for row in rows if row is not left_out)
        alike = (left_out.kind, left_out.family, left_out.stage, left_out.width)
        if any((row.kind, row.family, row.stage, row.width) == alike for row in others):
            needs = needs_of(job_of(left_out), Table(others))
            assert needs.memory_bytes >= left_out.peak_bytes, left_out
            assert needs.wall_s > left_out.largest_wall_s, left_out
            foretold += 1
    assert foretold >= 15  # decoder, its window and the duration encoder, for five targets each


def job_of(row: Row) -> Job:
    """A job of just the sort that `row` tells of."""
    return replace(
        JOB,
        kind=row.kind,
        family=row.family,
        stage=row.stage,
        width=row.width,
        target=row.target,
        toolkit=row.toolkit,
        checkpoint_bytes=row.checkpoint_bytes,
    )
