"""What a farm gains by a second core, what it takes beside its jobs' commands, and what a run with nothing left takes.

`make bench` runs it. Run it on a machine of two cores that does nothing else.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from rknn_tts.steps import ROOT
from tests.bench.farm_runs import FarmRun, run_farm, run_nothing, write_farm
from tests.bench.ratios import Figure, Table

VOICES = 12
"""Voices of each farm: an export, a compilation of three windows and a page each, some ten seconds of one core."""

ROUNDS = 2
"""Of which the mean counts; one core and two take turns, so that a slow spell of the machine hits both."""

CORES = 2

THROUGHPUT = 1.8
"""Issue 11: what two cores do over what one does."""

OVERHEAD_S = 0.5
"""Issue 11: of a job, at most."""

FEW, MANY = 10, 110
"""Jobs that do nothing: what a hundred more of them take is free of what Snakemake takes to start."""

REPORT = ROOT / "build-logs" / "bench-farm.json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[FarmRun]]:
    """Runs by the cores that they had, each from nothing."""
    found: dict[int, list[FarmRun]] = {1: [], CORES: []}
    for _ in range(ROUNDS):
        for cores, these in found.items():
            matrix = write_farm(tmp_path_factory.mktemp("farm") / "farm", VOICES)
            these.append(run_farm(matrix, cores))
    return found


def test_two_cores_do_over_one(runs: dict[int, list[FarmRun]], table: Table) -> None:
    one, two = (statistics.mean(run.measured.wall_s for run in runs[cores]) for cores in (1, CORES))
    table.add(*shares(runs))
    table.add(Figure(f"{VOICES} voices from checkpoint to page, {CORES} cores over one", "s", two, one, 1 / THROUGHPUT))


@pytest.mark.parametrize("cores", [1, CORES])
def test_a_job_takes_of_the_farm(runs: dict[int, list[FarmRun]], table: Table, cores: int) -> None:
    """Start, plan and catalogue are shared among the jobs, of which there are few here; and of two cores one is idle
    while the other does the last job."""
    overhead_s = statistics.mean(run.overhead_s for run in runs[cores])
    name = f"a job, all that no command ran of it, on {cores} cores, over what it may take"
    table.add(Figure(name, "s", overhead_s, OVERHEAD_S, 1.0))


def test_a_job_that_does_nothing_takes(tmp_path: Path, table: Table) -> None:
    few, many = (run_nothing(tmp_path / str(jobs), jobs, 1) for jobs in (FEW, MANY))
    table.add(
        Figure("a job that does nothing, over what it may take", "s", (many - few) / (MANY - FEW), OVERHEAD_S, 1.0),
        Figure(f"{FEW} jobs that do nothing, over {MANY} of them", "s", few, many),
    )


def test_a_farm_that_is_done_takes(tmp_path: Path, table: Table) -> None:
    matrix = write_farm(tmp_path / "farm", VOICES // CORES)
    first = run_farm(matrix, CORES)
    again = run_farm(matrix, CORES)
    assert again.outcomes == first.outcomes  # their own times among them: nothing was run
    table.add(Figure("a farm that is done, over its first run", "s", again.measured.wall_s, first.measured.wall_s))


def shares(runs: dict[int, list[FarmRun]]) -> list[Figure]:
    """What a job of each kind takes on two cores, over what it takes alone on one: what its neighbour costs it."""
    alone, beside = (runs[cores][0].means() for cores in (1, CORES))
    return [
        Figure(f"{kind}: commands of a job, {what}, beside another over alone", "s", beside[kind][i], alone[kind][i])
        for kind in alone
        for i, what in enumerate(("wall", "CPU"))
    ]
