from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from farm.jobs import Job, Kind, Plan
from farm.matrix import DEFAULT_TWICE
from farm.needs import needs_of_all
from farm.paper import on_paper
from farm.piper_paper import MEDIUM_BYTES, STAGES, TWICE, VOICES, paper_table, piper_plan
from farm.rows import SEED, read_table
from tests.rknn_tts.farm_matrices import PIPER, planned, touch

ROOT = Path(__file__).parents[2]


def shape(plan: Plan) -> tuple[list[tuple[Kind, str, str, str | None, str, Kind | None]], Counter[Kind]]:
    """What decides the figures of a plan's jobs, in order, and how many are of each kind; any may be made twice."""
    jobs = {job.id: job for job in plan.jobs}

    def need(job: Job) -> Kind | None:
        return jobs[job.needs[0]].kind if job.needs else None

    decides = [(job.kind, job.stage, job.width, job.target, job.toolkit, need(job)) for job in plan.jobs]
    return [each for each in decides if each[0] is not Kind.TWICE], Counter(job.kind for job in plan.jobs)


@pytest.mark.parametrize("stages", [STAGES[:1], STAGES])
def test_plan_on_paper_is_the_planners_when_the_voices_are_at_hand(stages: tuple[str, ...], tmp_path: Path) -> None:
    touch(tmp_path / "voices", *(f"{number}.onnx" for number in range(21)))
    for number in range(21):
        (tmp_path / "voices" / f"{number}.onnx.json").write_text("{}", encoding="utf-8")
    names = ", ".join(f'"{stage}"' for stage in stages)
    real = planned(tmp_path, f"{PIPER}\nstages = [{names}]", top='targets = ["rk3588", "rk3566"]')
    paper = piper_plan(21, stages, ("rk3588", "rk3566"))
    ordered = sorted(shape(real)[0], key=repr), shape(real)[1]
    assert (sorted(shape(paper)[0], key=repr), shape(paper)[1]) == ordered


def test_plan_on_paper_makes_as_many_twice_as_a_matrix_that_does_not_say() -> None:
    assert TWICE == DEFAULT_TWICE


def test_every_voice_is_exported_once_and_compiled_for_each_target() -> None:
    kinds = Counter(job.kind for job in piper_plan().jobs)
    # 1,683 times 5 are 8,415; of these one in a hundred again.
    assert kinds == {Kind.EXPORT: 1_683, Kind.COMPILE: 8_415, Kind.PAGE: 8_415, Kind.TWICE: 85}


def test_exports_and_compiles_on_paper_were_each_measured() -> None:
    plan = piper_plan(20, STAGES)
    needs = needs_of_all(plan.jobs, read_table(SEED))
    guessed = {job.kind for job, need in zip(plan.jobs, needs, strict=True) if not need.measured}
    # Pages are written of what the compile left, and take the same for all targets; what is made twice takes both.
    assert guessed <= {Kind.PAGE, Kind.TWICE}


def test_hours_on_paper_are_no_fewer_than_the_cores_can_work() -> None:
    table = read_table(SEED)
    for cores in (2, 16):
        paper = on_paper(piper_plan(50), table, cores, cores * 4 * 10**9)
        assert paper.core_hours / cores <= paper.hours <= 1.1 * paper.core_hours / cores


def test_table_follows_what_was_measured() -> None:
    table = read_table(SEED)
    slower = replace(table, rows=tuple(replace(row, wall_s=10 * row.wall_s) for row in table.rows))
    assert paper_table(table, 20) != paper_table(slower, 20)


def test_voices_on_paper_are_of_a_size_that_was_measured() -> None:
    sizes = {row.checkpoint_bytes for row in read_table(SEED).rows if row.family == "piper"}
    assert MEDIUM_BYTES in sizes


def test_command_prints_the_table_of_the_page() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "farm.piper_paper"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert f"{VOICES:,} voices for 5 SoCs" in told
    assert told in (ROOT / "docs" / "farm.md").read_text(encoding="utf-8")
