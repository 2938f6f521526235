"""What of a plan is done already: outcomes whose files are in their places. The others go before a run, so that their
jobs are done again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from contracts.files import sha256_of
from farm.jobs import Job, Kind, Plan
from farm.outcomes import Ended, JobOutcome, MadeFile, read_outcome
from farm.places import FarmPlaces


@dataclass(frozen=True)
class Standing:
    """How far a plan is.

    Attributes:
        at_hand: outcomes of jobs that need not be done, by id.
        ended: outcomes of jobs that did not go well the last time, which are tried again.
        gone: jobs that were done, and whose files are gone or are others now.
    """

    at_hand: Mapping[str, JobOutcome]
    ended: Mapping[str, JobOutcome]
    gone: frozenset[str]


def standing_of(plan: Plan, places: FarmPlaces) -> Standing:
    """What of `plan` is at hand below `places`; nothing is changed.

    A file counts as the one that was made while its size is the same and it was not written after the outcome, or has
    the digest. What was made twice left no files, and is at hand while its outcome is.
    """
    at_hand: dict[str, JobOutcome] = {}
    ended: dict[str, JobOutcome] = {}
    gone: set[str] = set()
    for job in plan.jobs:
        outcome = read_outcome(places.outcome(job.id))
        if outcome is None:
            continue
        if outcome.ended is not Ended.DONE:
            ended[job.id] = outcome
        elif job.kind is Kind.TWICE or _all_there(outcome, job, places):
            at_hand[job.id] = outcome
        else:
            gone.add(job.id)
    return Standing(at_hand, ended, frozenset(gone))


def prune(plan: Plan, standing: Standing, places: FarmPlaces, *, force: bool = False) -> None:
    """Remove the outcomes of jobs of `plan` that are to be done, also those that cannot be read; with `force`, all.

    Raises:
        OSError: one cannot be removed.
    """
    for job in plan.jobs:
        if force or job.id not in standing.at_hand:
            places.outcome(job.id).unlink(missing_ok=True)


def _all_there(outcome: JobOutcome, job: Job, places: FarmPlaces) -> bool:
    try:
        made_ns = places.outcome(job.id).stat().st_mtime_ns
    except OSError:
        return False
    return bool(outcome.files) and all(_is_there(made, made_ns, places.output) for made in outcome.files)


def _is_there(made: MadeFile, made_ns: int, output: Path) -> bool:
    path = Path(os.path.normpath(output / made.path))
    with suppress(OSError):
        status = path.stat()
        if status.st_size != made.bytes:
            return False
        return status.st_mtime_ns <= made_ns or sha256_of(path) == made.sha256
    return False
