from __future__ import annotations

from dataclasses import replace

import pytest

from farm.jobs import Job, Kind, Plan
from farm.paper import FARM_S, hours_text, on_paper
from farm.rows import Row, Table

GB = 10**9


def row(kind: Kind, seconds: float, peak_bytes: int = GB // 2, target: str | None = "rk3588") -> Row:
    """A job of `kind` takes `seconds` with the farm around it."""
    wall_s = seconds - FARM_S
    return Row(
        kind, "piper", "decoder", "", target, "2.3.2", 0, 1, peak_bytes, wall_s, wall_s, 1.0, 1.0, 2 * GB, 3 * GB
    )


def job(kind: Kind, number: int, *needs: str, target: str | None = "rk3588") -> Job:
    return Job(f"{kind.value}-{number}", kind, (), "", needs, "piper", "decoder", "joe", "", target, "2.3.2")


def exports(count: int) -> tuple[Job, ...]:
    return tuple(job(Kind.EXPORT, number, target=None) for number in range(count))


EXPORTS = Table((row(Kind.EXPORT, 3600.0, target=None),))


@pytest.mark.parametrize(("cores", "hours"), [(1, 6.0), (2, 3.0), (4, 2.0), (5, 2.0), (6, 1.0), (9, 1.0)])
def test_hours_are_as_few_as_the_cores_allow(cores: int, hours: float) -> None:
    paper = on_paper(Plan("m", exports(6)), EXPORTS, cores, 64 * GB)
    assert paper.hours == pytest.approx(hours)
    assert paper.core_hours == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("memory_gb", "hours", "at_once"), [(0.1, 6.0, 1), (0.7, 6.0, 1), (1.4, 3.0, 2), (2.0, 2.0, 3)]
)
def test_hours_are_as_few_as_the_memory_allows(memory_gb: float, hours: float, at_once: int) -> None:
    # 0.5 GB measured, with the margin 0.6 GB.
    paper = on_paper(Plan("m", exports(6)), EXPORTS, 8, round(memory_gb * GB))
    assert paper.hours == pytest.approx(hours)
    assert paper.peak_memory_gb == pytest.approx(min(memory_gb, 0.6 * at_once), abs=at_once * 0.064)


def test_what_needs_an_export_starts_when_that_is_made() -> None:
    table = Table((row(Kind.EXPORT, 3600.0, target=None), row(Kind.COMPILE, 7200.0), row(Kind.PAGE, 1800.0)))
    first, second = exports(2)
    compiled = job(Kind.COMPILE, 0, first.id)
    jobs = (first, second, compiled, job(Kind.PAGE, 0, compiled.id))
    # One core after the other: 1, 1, 2 and 0.5 hours. With two: both exports, then 2.5 hours on one of them.
    assert on_paper(Plan("m", jobs), table, 1, 64 * GB).hours == pytest.approx(4.5)
    assert on_paper(Plan("m", jobs), table, 2, 64 * GB).hours == pytest.approx(3.5)
    assert on_paper(Plan("m", jobs), table, 9, 64 * GB).hours == pytest.approx(3.5)


def test_smaller_job_starts_when_a_larger_one_has_no_room() -> None:
    table = Table((row(Kind.EXPORT, 3600.0, 2 * GB, None), row(Kind.PAGE, 3600.0, GB // 4)))
    jobs = (*exports(2), job(Kind.PAGE, 0), job(Kind.PAGE, 1))
    assert on_paper(Plan("m", jobs), table, 2, 4 * GB).hours == pytest.approx(2.0)


def test_what_is_needed_and_at_hand_is_not_waited_for() -> None:
    table = Table((row(Kind.COMPILE, 3600.0),))
    assert on_paper(Plan("m", (job(Kind.COMPILE, 0, "export-at-hand"),)), table, 1, GB).hours == pytest.approx(1.0)


def test_room_is_what_all_jobs_leave() -> None:
    paper = on_paper(Plan("m", exports(6)), EXPORTS, 8, 64 * GB)
    assert (paper.disk_gb, paper.cache_gb, paper.unmeasured) == (12.0, 18.0, 0)


def test_jobs_of_no_sort_that_was_measured_are_counted_and_told() -> None:
    plan = Plan("m", (*exports(2), job(Kind.COMPILE, 0)))
    paper = on_paper(plan, EXPORTS, 1, 64 * GB)
    assert paper.unmeasured == 1
    assert "1 of the jobs" in paper.text
    assert "not measured" not in on_paper(Plan("m", exports(2)), EXPORTS, 1, 64 * GB).text


def test_text_tells_hours_memory_and_room() -> None:
    assert on_paper(Plan("m", exports(6)), EXPORTS, 2, 64 * GB).text == (
        "6 jobs take 6.0 hours of one core: 3.0 hours on 2 cores with 64 GB of memory, at most 1.3 GB of it "
        "in use. They leave 12 GB in the output folder, and write 18 GB to the cache."
    )


def test_nothing_to_do_takes_nothing() -> None:
    paper = on_paper(Plan("m", ()), EXPORTS, 2, GB)
    assert (paper.jobs, paper.hours, paper.core_hours, paper.peak_memory_gb) == (0, 0.0, 0.0, 0.0)


def test_jobs_that_wait_for_each_other_are_a_fault() -> None:
    first, second = exports(2)
    loop = (replace(first, needs=(second.id,)), replace(second, needs=(first.id,)))
    with pytest.raises(ValueError, match="wait for each other"):
        on_paper(Plan("m", loop), EXPORTS, 2, GB)


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (1 / 60, "1 minute"),
        (0.5, "30 minutes"),
        (1.0, "1.0 hours"),
        (99.9, "99.9 hours"),
        (100.0, "100 hours"),
        (1234.0, "1,234 hours"),
    ],
)
def test_hours_are_told_as_a_person_tells_them(hours: float, text: str) -> None:
    assert hours_text(hours) == text
