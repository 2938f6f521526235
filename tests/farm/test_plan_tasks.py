from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from farm.died import Died, write_died
from farm.jobs import Kind, Plan
from farm.outcomes import Ended
from farm.places import FarmPlaces
from farm.plan_tasks import tasks_of
from farm.rows import Row, table_of
from tests.farm.stub_farms import STAGE, job

ROW = Row(
    Kind.EXPORT,
    "stub",
    STAGE,
    "",
    "rk3588",
    "2.3.2",
    0,
    times=1,
    peak_bytes=500_000_001,
    wall_s=100.0,
    largest_wall_s=200.0,
    disk_bytes=10_000_000,
)
TABLE = table_of({ROW.key: ROW}, 0.0)


def test_tasks_say_what_was_measured_with_its_margins(tmp_path: Path) -> None:
    plan = Plan("m.toml", (job("anna"), job("berta")))
    tasks = tasks_of(plan, TABLE, FarmPlaces(tmp_path))
    assert [task.job for task in tasks] == list(plan.jobs)
    assert [(task.memory_mb, task.minutes, task.alone) for task in tasks] == [(601, 14, False)] * 2  # 4 x 200 s
    assert tasks[0].disk_mb >= 12


@pytest.mark.parametrize(("ended", "alone"), [(Ended.MEMORY, True), (Ended.DISK, False), (Ended.LOST, False)])
def test_task_starts_alone_when_it_died_for_memory_before(ended: Ended, alone: bool, tmp_path: Path) -> None:
    places, one, other = FarmPlaces(tmp_path), job("anna"), job("berta")
    write_died(Died(one.id, 1, ended, "Why.", "n1", 1), places.died(one.id))
    places.died(other.id).write_text("{", encoding="utf-8")  # damaged
    tasks = tasks_of(Plan("m.toml", (one, other)), TABLE, places)
    assert [task.alone for task in tasks] == [alone, False]


def test_task_needs_more_when_its_row_does(tmp_path: Path) -> None:
    larger = replace(ROW, peak_bytes=900_000_000)
    (task,) = tasks_of(Plan("m.toml", (job("anna"),)), table_of({larger.key: larger}, 0.0), FarmPlaces(tmp_path))
    assert task.memory_mb == 1080
