"""What a job is expected to take, from the nearest rows of the table, or from the size of its checkpoint.

What a job takes is taken to grow with the size of its checkpoint to the power of `GROWTH`, but to no more than the size
alone would say; of a smaller checkpoint than its row's, no less than the row says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from farm.jobs import Job, Kind
from farm.rows import Row, Table, size_class

GROWTH = 1.5
"""A voice of Piper's high quality is 1.8 times as large as one of medium quality. Its compile took 2.3 times the memory
(1.8**1.43), its export 1.6 times. Its time was 3.7 and 4.2 times as long, which is what limits are wide for."""

MARGIN = 1.2
"""On measured memory and disk. Rows join checkpoints that differ by less than this, and samples miss a short peak."""

BYTES_PER_CHECKPOINT_BYTE = 25
LEAST_BYTES = 1000 * 10**6
"""What a job takes of which no row tells, as `rknn_tts.many_budget` has it, where both are measured."""

LEFT_BYTES_PER_CHECKPOINT_BYTE = 4
LEAST_LEFT_BYTES = 50 * 10**6

SECONDS_PER_CHECKPOINT_BYTE = 26 / 63.2e6
"""Piper's default voice: 63.2 MB take 26 s (docs/many-voices.md)."""

LEAST_S = 5.0
"""No job of which no row tells is expected to take less: the tests' voices take 2 to 4 s."""

TIMES_THE_LONGEST = 4.0
"""A job may take as many times what the longest of its row did: the limit is to end what hangs, not what is slow on
another node or beside other jobs."""

LEAST_LIMIT_S = 600.0
"""No limit is shorter: a job of seconds may wait for minutes for a shared disk, and such a limit costs nothing."""

UNMEASURED_LIMIT_S = 3600.0
"""No limit of a job is shorter of which no row tells."""


_Distance = tuple[bool, float, bool, bool]

_NO_DISTANCE: _Distance = (False, 0.0, False, False)


@dataclass(frozen=True)
class Needs:
    """What a job is to be given.

    Attributes:
        memory_bytes: resident memory of all its processes, with a margin.
        wall_s: the longest that it may take on the clock, for schedulers that end what takes longer.
        disk_bytes: what it leaves in output folder and cache, with a margin.
        measured: whether a job of just this sort was measured.
        expected_s: the time that it is expected to take.
        left_bytes, cache_bytes: what it is expected to leave in the output folder, and in the cache.
    """

    memory_bytes: int
    wall_s: float
    disk_bytes: int
    measured: bool
    expected_s: float
    left_bytes: int
    cache_bytes: int


def needs_of(job: Job, table: Table) -> Needs:
    """What `job` needs: by its own row, else by the nearest of its stage, else by the size of its checkpoint.

    Near is first one of the same width, then of the nearest size of checkpoint, then for the same target, then by the
    same toolkit: that is the order of what changes the figures most. Of several that are as near, the largest figures
    count. What is made twice needs what its export and its compile do.
    """
    near = _nearest(job, table.by_stage.get((job.kind, job.family, job.stage), ()))
    if near:
        return _by_rows(job, near)
    return _both(job, table) if job.kind is Kind.TWICE else _by_size(job)


def needs_of_all(jobs: Iterable[Job], table: Table) -> list[Needs]:
    """What each of `jobs` needs; jobs of one sort are looked up once."""
    known: dict[tuple[object, ...], Needs] = {}
    found = []
    for job in jobs:
        sort = (job.kind, job.family, job.stage, job.width, job.target, job.toolkit, job.checkpoint_bytes)
        if sort not in known:
            known[sort] = needs_of(job, table)
        found.append(known[sort])
    return found


def _nearest(job: Job, rows: Sequence[Row]) -> list[Row]:
    """Those of `rows` that are as near to `job` as any."""
    if not rows:
        return []
    distances = [(_distance(job, row), row) for row in rows]
    least = min(distance for distance, _ in distances)
    return [row for distance, row in distances if distance == least]


def _distance(job: Job, row: Row) -> _Distance:
    """How far `row` is from `job`: first what weighs most."""
    return (
        row.width != job.width,
        _apart(size_class(job.checkpoint_bytes), size_class(row.checkpoint_bytes)),
        row.target != job.target,
        row.toolkit != job.toolkit,
    )


def _apart(first: int | None, second: int | None) -> float:
    """How many classes of size lie between these; a size that is not known is as far from all others as can be."""
    if first is None or second is None:
        return 0.0 if first is second else math.inf
    return float(abs(first - second))


def _by_rows(job: Job, rows: Sequence[Row]) -> Needs:
    """What the largest figures of `rows` say; the checkpoint says the rest where none was seen to its end."""
    by_size = _by_size(job)
    measured = [row for row in rows if row.times > 0]
    least_bytes = MARGIN * max(row.least_bytes for row in rows)
    if not measured:
        return replace(by_size, memory_bytes=max(by_size.memory_bytes, round(least_bytes)))
    ratio = max(_ratio(job, row) for row in measured)
    left_bytes = _grown(max(row.disk_bytes for row in measured), ratio, by_size.left_bytes)
    cache_bytes = _grown(max(row.cache_bytes for row in measured), ratio, by_size.cache_bytes) or left_bytes
    memory_bytes = MARGIN * _grown(max(row.peak_bytes for row in measured), ratio, by_size.memory_bytes)
    longest_s = _grown(max(row.largest_wall_s for row in measured), ratio, by_size.expected_s)
    return Needs(
        memory_bytes=round(max(memory_bytes, least_bytes)),
        wall_s=max(LEAST_LIMIT_S, TIMES_THE_LONGEST * longest_s),
        disk_bytes=round(MARGIN * (left_bytes + cache_bytes)),
        measured=_distance(job, measured[0]) == _NO_DISTANCE,
        expected_s=_grown(max(row.wall_s for row in measured), ratio, by_size.expected_s),
        left_bytes=round(left_bytes),
        cache_bytes=round(cache_bytes),
    )


def _ratio(job: Job, row: Row) -> float:
    """How many times what `row` says `job` takes; 1 where its checkpoint is none larger, or a size is not known."""
    apart = _apart(size_class(job.checkpoint_bytes), size_class(row.checkpoint_bytes))
    return max(1.0, job.checkpoint_bytes / row.checkpoint_bytes) ** GROWTH if 0 < apart < math.inf else 1.0


def _grown(measured: float, ratio: float, by_size: float) -> float:
    """A figure that is `ratio` times as large, but no larger than what the size alone would say."""
    return max(measured, min(ratio * measured, by_size))


def _by_size(job: Job) -> Needs:
    """What is expected of a job of which no row tells."""
    pages = job.kind is Kind.PAGE  # they read what was made, not the checkpoint
    size_bytes = 0 if pages else job.checkpoint_bytes
    expected_s = max(LEAST_S, SECONDS_PER_CHECKPOINT_BYTE * size_bytes)
    left_bytes = max(LEAST_LEFT_BYTES, LEFT_BYTES_PER_CHECKPOINT_BYTE * size_bytes)
    return Needs(
        memory_bytes=max(LEAST_BYTES, BYTES_PER_CHECKPOINT_BYTE * size_bytes),
        wall_s=max(UNMEASURED_LIMIT_S, TIMES_THE_LONGEST * expected_s),
        disk_bytes=2 * left_bytes,  # as much again in the cache
        measured=False,
        expected_s=expected_s,
        left_bytes=left_bytes,
        cache_bytes=left_bytes,
    )


def _both(job: Job, table: Table) -> Needs:
    """What the export and the compile that `job` repeats take, one after the other; all that they leave is removed."""
    export = needs_of(replace(job, kind=Kind.EXPORT, target=None), table)
    compiled = needs_of(replace(job, kind=Kind.COMPILE), table)
    return Needs(
        memory_bytes=max(export.memory_bytes, compiled.memory_bytes),
        wall_s=export.wall_s + compiled.wall_s,
        disk_bytes=export.disk_bytes + compiled.disk_bytes,
        measured=False,
        expected_s=export.expected_s + compiled.expected_s,
        left_bytes=0,
        cache_bytes=0,
    )
