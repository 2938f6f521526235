"""What each job of a plan may take, by what was measured, and what earlier attempts died for."""

from __future__ import annotations

import math

from farm.died import read_died
from farm.jobs import Job, Plan
from farm.measured import Table, needs_of
from farm.outcomes import Ended
from farm.places import FarmPlaces
from farm.tasks import Task

MB = 10**6
SECONDS_PER_MINUTE = 60


def tasks_of(plan: Plan, table: Table, places: FarmPlaces) -> list[Task]:
    """The tasks of `plan`, in its order."""
    died = {path.stem for path in places.died("x").parent.glob("*.json")}
    return [_task(job, table, places, may_have_died=job.id in died) for job in plan.jobs]


def _task(job: Job, table: Table, places: FarmPlaces, *, may_have_died: bool) -> Task:
    needs = needs_of(job, table)
    note = read_died(places.died(job.id)) if may_have_died else None
    return Task(
        job=job,
        memory_mb=math.ceil(needs.memory_bytes / MB),
        disk_mb=math.ceil(needs.disk_bytes / MB),
        minutes=math.ceil(needs.wall_s / SECONDS_PER_MINUTE),
        alone=note is not None and note.ended is Ended.MEMORY,
    )
