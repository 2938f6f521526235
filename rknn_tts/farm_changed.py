"""Checkpoints that changed while a farm ran: what was made of them does not belong to the jobs that name it.

A job's id holds the digest that its checkpoint had when the farm was planned, and its command reads the file when its
turn comes. Were the outcome kept, the engines of one file would be taken for those of another when that is back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from farm.jobs import Job, Kind, Plan
from farm.outcomes import Ended, read_outcome, write_outcome
from farm.places import FarmPlaces


def disown_changed(plan: Plan, now: Plan, at_hand: Collection[str], places: FarmPlaces) -> list[str]:
    """Let the jobs of `plan` count as failed that this run did and whose checkpoint is another by now; its voices.

    Args:
        plan: what was run.
        now: the plan of the same matrix, made anew behind it.
        at_hand: ids of jobs that this run did not do.
        places: the farm's files, of which outcomes are written.

    Raises:
        OSError: an outcome cannot be written.
    """
    ids = {_of(job): job.id for job in now.jobs if job.kind is Kind.EXPORT}
    changed: dict[str, None] = {}
    voices: dict[str, None] = {}
    for job in plan.jobs:  # needs come first
        is_other = job.kind is Kind.EXPORT and ids.get(_of(job), job.id) != job.id
        if not is_other and not any(need in changed for need in job.needs):
            continue
        changed[job.id] = None
        outcome = None if job.id in at_hand else read_outcome(places.outcome(job.id))
        if outcome is not None and outcome.ended is Ended.DONE:
            sentence = f"{job.checkpoint or job.voice}: changed while the farm ran; run it again."
            failed = replace(outcome, ended=Ended.FAILED, sentence=sentence, files=(), models=())
            write_outcome(failed, places.outcome(job.id))
            voices[job.voice] = None
    return list(voices)


def _of(job: Job) -> tuple[str, str, str, str, str | None]:
    """What an export is of, whatever the checkpoint holds."""
    return job.family, job.stage, job.voice, job.width, job.target
