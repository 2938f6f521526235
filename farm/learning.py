"""Rows of the table from what jobs took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from farm.jobs import Job, Kind
from farm.manifest_rows import from_manifests
from farm.outcomes import Ended, JobOutcome
from farm.rows import Row, Table, laid_over, merged, table_of

DECISIVE = {Kind.EXPORT: "export", Kind.COMPILE: "build", Kind.TWICE: "build"}
"""The step that a job is for: where it was found again, the job has measured nothing."""


def brought_up_to_date(own: Table, output: Path, jobs: Sequence[Job], outcomes: Iterable[JobOutcome]) -> Table:
    """A farm's own table with all that is to be learnt from its output folder: outcomes first, then manifests.

    Args:
        own: what it knows already.
        output: its output folder.
        jobs: those of its plan.
        outcomes: those that are at hand.
    """
    known = list(outcomes)
    by_outcomes = learnt(own, jobs, known)
    with_outcome = {outcome.job for outcome in known}
    by_manifests = from_manifests(output, (job for job in jobs if job.id not in with_outcome))
    return laid_over(by_manifests, by_outcomes)


def learnt(table: Table, jobs: Iterable[Job], outcomes: Iterable[JobOutcome]) -> Table:
    """`table` with what these jobs took; outcomes that are in it already change nothing."""
    job_of = {job.id: job for job in jobs}
    rows = {row.key: row for row in table.rows}
    until_s = table.learnt_until_s
    for outcome in outcomes:
        job = job_of.get(outcome.job)
        if job is None or outcome.started_s <= table.learnt_until_s:
            continue
        until_s = max(until_s, outcome.started_s)
        row = _row_of(job, outcome)
        if row is not None:
            rows[row.key] = merged(rows[row.key], row) if row.key in rows else row
    return table_of(rows, until_s)


def _row_of(job: Job, outcome: JobOutcome) -> Row | None:
    """What the outcome of `job` teaches; None where that is nothing."""
    empty = Row(job.kind, job.family, job.stage, job.width, job.target, job.toolkit, job.checkpoint_bytes)
    if outcome.ended is Ended.MEMORY:
        return replace(empty, least_bytes=outcome.peak_bytes)
    if outcome.ended is not Ended.DONE or DECISIVE.get(job.kind) in outcome.reused:
        return None
    return replace(
        empty,
        times=1,
        peak_bytes=outcome.peak_bytes,
        wall_s=outcome.wall_s,
        largest_wall_s=outcome.wall_s,
        cpu_s=outcome.cpu_s,
        largest_cpu_s=outcome.cpu_s,
        disk_bytes=sum(file.bytes for file in outcome.files),
    )
