"""The catalogue of a farm's output folder, of its plan, its outcomes and the manifests of its engines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.manifest import Manifest
from contracts.verdicts import Status
from farm.catalogue import (
    Catalogue,
    EngineEntry,
    Failure,
    Fault,
    JobMeasured,
    Repeat,
    Totals,
    TotalsMeasured,
    VerdictCounts,
    summed,
)
from farm.died import Died, read_died
from farm.engine_entries import Standing, entry_of
from farm.engine_files import ENGINE_SUFFIX, Damaged, checked_manifest, is_inside
from farm.jobs import Job, Kind, Plan, Unplanned, read_plan
from farm.outcomes import Ended, JobOutcome, read_outcome
from farm.places import FarmPlaces
from farm.plain_folder import engines_below
from farm.repeats import repeat_failure, repeat_of

PAGE_SUFFIX = ".html"


@dataclass(frozen=True)
class Ran:
    """What became of a job, and when that was written, in ns since 1970."""

    outcome: JobOutcome
    written_ns: int


def gather_farm(places: FarmPlaces) -> Catalogue:
    """The catalogue of the farm whose output folder has `places`.

    Raises:
        UserInput: its plan cannot be read.
    """
    plan = read_plan(places.plan)
    ran = {job.id: found for job in plan.jobs if (found := _ran(places.outcome(job.id))) is not None}
    failures = list(_failed_jobs(plan.jobs, ran, places))
    engines: list[EngineEntry] = []
    pages, gone = _pages(plan.jobs, ran, places)
    failures += gone
    for job in plan.jobs:
        if job.kind is Kind.COMPILE and _is_done(job.id, ran):
            made, damaged = _engines_of(job, ran[job.id], pages.get(job.id, ()), places)
            engines += made
            failures += damaged
    repeats = list(_repeats(plan.jobs, ran))
    failures += [failure for repeat in repeats if (failure := repeat_failure(repeat)) is not None]
    named = {file.path for found in ran.values() for file in found.outcome.files}
    strangers = tuple(path for path in engines_below(places.output) if path not in named)
    return assembled(plan, engines, failures, repeats, strangers, [found.outcome for found in ran.values()])


def assembled(
    plan: Plan | None,
    engines: Iterable[EngineEntry],
    failures: Iterable[Failure],
    repeats: Sequence[Repeat] = (),
    strangers: Sequence[str] = (),
    outcomes: Iterable[JobOutcome] = (),
) -> Catalogue:
    """The catalogue of these, in its order; engines with a verdict that failed are failures too."""
    entries = tuple(sorted(engines, key=_engine_order))
    wrong = (*failures, *(_failed_verdicts(entry) for entry in entries if entry.verdicts.failed))
    unplanned = plan.unplanned if plan else ()
    done = [outcome for outcome in outcomes if outcome.ended is Ended.DONE]
    return Catalogue(
        matrix=plan.matrix if plan else None,
        engines=entries,
        failures=tuple(sorted(wrong, key=_failure_order)),
        unplanned=unplanned,
        repeats=tuple(sorted(repeats, key=lambda r: (r.family, r.stage, r.voice, r.width, r.target or ""))),
        strangers=tuple(strangers),
        totals=_totals(len(plan.jobs) if plan else 0, done, entries, wrong, unplanned, repeats),
    )


def _ran(path: Path) -> Ran | None:
    outcome = read_outcome(path)
    try:
        return None if outcome is None else Ran(outcome, path.stat().st_mtime_ns)
    except OSError:
        return None


def _is_done(job: str, ran: Mapping[str, Ran]) -> bool:
    return job in ran and ran[job].outcome.ended is Ended.DONE


def _failed_jobs(jobs: Sequence[Job], ran: Mapping[str, Ran], places: FarmPlaces) -> Iterator[Failure]:
    known = {job.id: job for job in jobs}
    for job in jobs:
        if _is_done(job.id, ran):
            continue
        log = places.log(job.id)
        found = ran[job.id].outcome if job.id in ran else None
        fault, sentence = _why(job, found, read_died(places.died(job.id)), known, ran)
        yield Failure(
            fault,
            sentence,
            *_of(job),
            log=log.relative_to(places.output).as_posix() if log.is_file() else None,
            measured=_job_measured(found),
        )


def _why(
    job: Job, found: JobOutcome | None, died: Died | None, jobs: Mapping[str, Job], ran: Mapping[str, Ran]
) -> tuple[Fault, str]:
    """How `job` ended, and why."""
    lacking = _lacking(job, jobs, ran)
    if found is not None and found.ended is not Ended.WAITING:
        return Fault(found.ended.value), found.sentence or f"It ended as {found.ended.value}, and does not say why."
    if died is not None and found is None:
        return Fault(died.ended.value), f"{died.sentence} Its other attempts left no word; run the farm again."
    if lacking is not None:
        how = ran[lacking.id].outcome.ended if lacking.id in ran else Ended.LOST
        return Fault.WAITING, f"It was not begun: its {lacking.kind.value} ended as {how.value}."
    if found is not None:
        return Fault.WAITING, f"{found.sentence or 'It waited.'} What it needs is done by now; run the farm again."
    return Fault.LOST, "Nothing tells how it ended: it was not begun, or was lost with its node; run the farm again."


def _lacking(job: Job, jobs: Mapping[str, Job], ran: Mapping[str, Ran]) -> Job | None:
    """The job that `job` waits for, itself or by others: not done, though all that it needs is; None where none is."""
    need = next((jobs[need] for need in job.needs if need in jobs and not _is_done(need, ran)), None)
    return None if need is None else _lacking(need, jobs, ran) or need


def _of(job: Job) -> tuple[str, str, str, str, str, str, str | None]:
    """What a failure says of its job, from `job` to `target`."""
    return job.id, job.kind.value, job.family, job.stage, job.voice, job.width, job.target


def _job_measured(found: JobOutcome | None) -> JobMeasured:
    if found is None:
        return JobMeasured()
    return JobMeasured(found.node, found.attempt, found.wall_s, found.cpu_s, found.peak_bytes)


def _pages(
    jobs: Iterable[Job], ran: Mapping[str, Ran], places: FarmPlaces
) -> tuple[dict[str, tuple[str, ...]], list[Failure]]:
    """The pages of each job that compiled, by its id, and what is wrong with those that are gone."""
    pages: dict[str, tuple[str, ...]] = {}
    failures: list[Failure] = []
    for job in jobs:
        if job.kind is not Kind.PAGE or not _is_done(job.id, ran):
            continue
        drawn = [file.path for file in ran[job.id].outcome.files if file.path.endswith(PAGE_SUFFIX)]
        there = tuple(path for path in drawn if is_inside(path) and _is_file(places.output / path))
        for path in drawn:
            if path not in there:
                sentence = f"{path}: the page is gone, or lies outside of the folder; run the farm again."
                failures.append(
                    Failure(Fault.DAMAGED, sentence, *_of(job), measured=_job_measured(ran[job.id].outcome))
                )
        pages.update(dict.fromkeys(job.needs, there))
    return pages, failures


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises where its folder cannot be read


def _engines_of(
    job: Job, ran: Ran, pages: Sequence[str], places: FarmPlaces
) -> tuple[list[EngineEntry], list[Failure]]:
    """The engines that `job` made, and what is wrong with those that are none."""
    made: list[EngineEntry] = []
    damaged: list[Failure] = []
    for file in ran.outcome.files:
        if not file.path.endswith(ENGINE_SUFFIX):
            continue
        try:
            manifest = checked_manifest(places.output, file.path, file, ran.written_ns)
            _check_target(manifest, job, file.path)
        except Damaged as error:
            measured = _job_measured(ran.outcome)
            damaged.append(Failure(Fault.DAMAGED, str(error), *_of(job), path=file.path, measured=measured))
            continue
        page = _page_of(file.path, pages)
        standing = Standing(job.voice, job.width, file.path, job.language, page, job.id, ran.outcome.node)
        made.append(entry_of(manifest, standing))
    if not made and not damaged:
        sentence = "It is said to be done, and has made no engine; run the farm again with --force."
        damaged.append(Failure(Fault.DAMAGED, sentence, *_of(job), measured=_job_measured(ran.outcome)))
    return made, damaged


def _check_target(manifest: Manifest, job: Job, path: str) -> None:
    if job.target is not None and manifest.target != job.target:
        raise Damaged(f"{path}: its manifest says {manifest.target}, and its job {job.target}; run the farm again.")


def _page_of(engine: str, pages: Sequence[str]) -> str | None:
    """The page of `engine`: its own, or the one of several engines."""
    own = f"{engine.removesuffix(ENGINE_SUFFIX)}{PAGE_SUFFIX}"
    return own if own in pages else next(iter(pages), None)


def _repeats(jobs: Iterable[Job], ran: Mapping[str, Ran]) -> Iterator[Repeat]:
    known = {job.id: job for job in jobs}
    for job in known.values():
        compiled = next((need for need in job.needs if need in known and known[need].kind is Kind.COMPILE), None)
        if job.kind is not Kind.TWICE or compiled is None or not (_is_done(job.id, ran) and _is_done(compiled, ran)):
            continue
        exports = known[compiled].needs
        if not all(_is_done(need, ran) for need in exports):  # what it left is not known: that is no other bytes
            continue
        first = [ran[name].outcome for name in (compiled, *exports)]
        yield repeat_of(job, compiled, first, ran[job.id].outcome)


def _failed_verdicts(entry: EngineEntry) -> Failure:
    failed = [verdict for verdict in entry.notable if verdict.status is Status.FAILED]
    more = f" ({len(failed) - 1} more of its verdicts failed.)" if len(failed) > 1 else ""
    return Failure(
        Fault.FAILED,
        f"{failed[0].gate}: {failed[0].detail or 'failed.'}{more}",
        entry.job,
        "engine",
        entry.family,
        entry.stage,
        entry.voice,
        entry.width,
        entry.target,
        path=entry.path,
        measured=JobMeasured(node=entry.measured.node),
    )


def _engine_order(entry: EngineEntry) -> tuple[str, ...]:
    names = (entry.family, entry.stage, entry.voice, entry.width, entry.target, entry.role, entry.path)
    return tuple(name or "" for name in names)


def _failure_order(failure: Failure) -> tuple[object, ...]:
    of = (failure.family, failure.stage, failure.voice, failure.width, failure.target, failure.job, failure.path)
    return (failure.fault is Fault.WAITING, *(name or "" for name in of))


def _totals(
    jobs: int,
    done: Sequence[JobOutcome],
    engines: Sequence[EngineEntry],
    failures: Sequence[Failure],
    unplanned: Sequence[Unplanned],
    repeats: Sequence[Repeat],
) -> Totals:
    return Totals(
        jobs=jobs,
        done=len(done),
        engines=len(engines),
        bytes=sum(entry.bytes for entry in engines),
        voices=len({(entry.family, entry.voice) for entry in engines}),
        targets=len({entry.target for entry in engines}),
        verdicts=summed(entry.verdicts for entry in engines) if engines else VerdictCounts(),
        faults=dict(sorted(Counter(failure.fault.value for failure in failures).items())),
        unplanned=len(unplanned),
        repeated=len(repeats),
        same=sum(repeat.same for repeat in repeats),
        measured=TotalsMeasured(
            nodes=tuple(sorted({outcome.node for outcome in done})),
            wall_s=sum(outcome.wall_s for outcome in done),
            cpu_s=sum(outcome.cpu_s for outcome in done),
            peak_bytes=max((outcome.peak_bytes for outcome in done), default=0),
        ),
    )
