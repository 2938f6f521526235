"""What each job of a plan may take, by what was measured, and what earlier attempts died for."""

from __future__ import annotations

import math

from farm.died import read_died
from farm.jobs import Job, Plan
from farm.measured import Needs, Table, needs_of_all
from farm.outcomes import Ended
from farm.places import FarmPlaces
from farm.tasks import Task

MB = 10**6
SECONDS_PER_MINUTE = 60


def tasks_of(plan: Plan, table: Table, places: FarmPlaces) -> list[Task]:
    """The tasks of `plan`, in its order."""
    died = {path.stem for path in places.died("x").parent.glob("*.json")}
    needs = needs_of_all(plan.jobs, table)
    return [
        _task(job, need, job.id in died and _died_for_memory(job, places))
        for job, need in zip(plan.jobs, needs, strict=True)
    ]


def _task(job: Job, needs: Needs, alone: bool) -> Task:
    return Task(
        job=job,
        memory_mb=math.ceil(needs.memory_bytes / MB),
        disk_mb=math.ceil(needs.disk_bytes / MB),
        minutes=math.ceil(needs.wall_s / SECONDS_PER_MINUTE),
        alone=alone,
    )


def _died_for_memory(job: Job, places: FarmPlaces) -> bool:
    note = read_died(places.died(job.id))
    return note is not None and note.ended is Ended.MEMORY
