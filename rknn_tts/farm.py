"""`rknn-tts farm`: a matrix of checkpoints and targets, planned, run by Snakemake, and catalogued.

What is done already stays: a job's id is a digest of all that decides its result, so the same command goes on where it
was interrupted, and does nothing where nothing has changed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import EXIT_DONE, UserInput
from engine.memory import available_bytes
from farm.catalogue import exit_code_of
from farm.catalogue_file import read_catalogue
from farm.jobs import Kind, Plan, write_plan
from farm.launch import last_line, run_workflow
from farm.matrix import Matrix, read_matrix
from farm.measured import SEED, brought_up_to_date, read_table, write_table
from farm.outcomes import Ended, JobOutcome, read_outcome
from farm.paper import on_paper
from farm.places import FarmPlaces
from farm.pruning import Standing, prune, standing_of
from rknn_tts.build_step import GB, MEMORY_SHARE
from rknn_tts.catalogue import Catalogued, catalogue_folder, check_replaced, extra_of, fault_of
from rknn_tts.farm_changed import disown_changed
from rknn_tts.farm_jobs import Planned, plan_of
from rknn_tts.farm_places import Profile, check_output, only_farm, profile_at
from rknn_tts.farm_preparing import add_extras, farm_python, fetch_packages, make_converters, use_whole_paths
from rknn_tts.farm_rows import rows_of
from rknn_tts.known_files import read_known
from rknn_tts.progress import Say
from rknn_tts.report import EXIT_INTERRUPTED, NOTHING, Report
from rknn_tts.request import Request

FARM = "farm"
"""Key of `Report.extra`."""

NOTHING_AT_HAND = Standing({}, {}, frozenset())


@dataclass(frozen=True)
class KindCount:
    """How far the jobs of one kind are.

    Attributes:
        kind: export, compile, page or twice.
        jobs: how many the plan has.
        at_hand: how many had been done before.
        done: how many are done now, those before included.
        ended: how many are not, by how they ended; `lost` where nobody knows.
    """

    kind: Kind
    jobs: int
    at_hand: int
    done: int
    ended: dict[str, int]


@dataclass(frozen=True)
class FarmRun:
    """What a farm came to.

    Attributes:
        matrix: the file's name.
        output: the folder.
        kinds: how far it is.
        unplanned: how many checkpoints no job was made of.
        seconds: on the clock.
        log: what Snakemake said, where it ran.
        paper: of a dry run, what it would take, as sentences.
        dry_run: whether nothing was done.
    """

    matrix: str
    output: str
    kinds: tuple[KindCount, ...]
    unplanned: int
    seconds: float
    log: str | None = None
    paper: str | None = None
    dry_run: bool = False


def farm(request: Request, say: Say) -> Report:
    """Do what the matrix of `request` asks for.

    The exit code is 1 where a job failed or was lost, else 2 where one was refused or a checkpoint is none, else 0.

    Raises:
        UserInput: the matrix asks for what there is not, or its folder cannot be used; nothing was started.
    """
    start_s = time.monotonic()
    assert request.matrix is not None
    matrix = read_matrix(Path(request.matrix))
    if request.output is not None:
        matrix = replace(matrix, output=Path(request.output).absolute())
    check_output(matrix.output)
    profile = profile_at(request.profile) if request.profile is not None else None
    places = FarmPlaces(matrix.output)
    if request.dry_run:
        return _dry(request, matrix, places, start_s, say)
    with only_farm(places):
        return _run(request, matrix, places, profile, start_s, say)


def _dry(request: Request, matrix: Matrix, places: FarmPlaces, start_s: float, say: Say) -> Report:
    say.step("planning")
    planned = plan_of(matrix, read_known(places.digests), force=request.force)
    _tell(planned, say)
    standing = NOTHING_AT_HAND if request.force else standing_of(planned.plan, places)
    left = replace(planned.plan, jobs=tuple(job for job in planned.plan.jobs if job.id not in standing.at_hand))
    cores = request.cores or len(os.sched_getaffinity(0))
    paper = on_paper(left, read_table(SEED, places.measured), cores, _memory_bytes(request))
    run = _farm_run(planned.plan, places, standing, standing.at_hand, start_s)
    return Report(request, extra={FARM: replace(run, dry_run=True, paper=paper.text if left.jobs else None)})


def _run(
    request: Request, matrix: Matrix, places: FarmPlaces, profile: Profile | None, start_s: float, say: Say
) -> Report:
    plan: Plan | None = None
    standing = NOTHING_AT_HAND
    try:
        use_whole_paths()
        fetch_packages(rows_of(matrix), say)
        say.step("planning")
        known = read_known(places.digests)
        planned = plan_of(matrix, known, force=request.force)
        plan = planned.plan
        known.write(places.digests)
        _tell(planned, say)
        check_replaced(places)
        against = _against(request, places, say)
        standing = standing_of(plan, places)
        prune(plan, standing, places, force=request.force)
        if request.force:
            standing = NOTHING_AT_HAND
        write_plan(plan, places.plan)
        code = _work(request, planned, standing, places, profile, say)
        _disown(request, matrix, plan, standing, places)
        done = catalogue_folder(places.output, against, say)
    except KeyboardInterrupt:
        return _interrupted(request, plan, places, standing, start_s)
    return _report(request, plan, places, standing, done, code, start_s)


def _work(
    request: Request, planned: Planned, standing: Standing, places: FarmPlaces, profile: Profile | None, say: Say
) -> int:
    """Do the jobs that are not at hand; Snakemake's exit code."""
    jobs = planned.plan.jobs
    left = [job for job in jobs if job.id not in standing.at_hand]
    if not left:
        return EXIT_DONE
    add_extras(planned.extras, say)
    elsewhere = profile is not None and profile.elsewhere
    if not elsewhere:
        make_converters(left, say)
    python = farm_python(say)
    _learn(planned.plan, places, {**standing.at_hand, **standing.ended}, say)
    say.step(f"{len(jobs) - len(left)} of {len(jobs)} jobs done")
    try:
        return run_workflow(
            places,
            python=python,
            cores=request.cores,
            memory_bytes=0 if elsewhere else _memory_bytes(request),
            profile=None if profile is None else profile.folder,
            say=say.step,
        )
    finally:
        _learn(planned.plan, places, _outcomes(planned.plan, places, standing), say)


def _disown(request: Request, matrix: Matrix, plan: Plan, standing: Standing, places: FarmPlaces) -> None:
    """See that nothing which this run made of a checkpoint that changed meanwhile counts as done."""
    if len(standing.at_hand) == len(plan.jobs):
        return
    try:
        now = plan_of(matrix, read_known(places.digests), force=request.force)
    except UserInput:  # the checkpoints are gone, and what they were is built
        return
    disown_changed(plan, now.plan, standing.at_hand, places)


def _learn(plan: Plan, places: FarmPlaces, outcomes: Mapping[str, JobOutcome], say: Say) -> None:
    """Bring the table up to date of what jobs take; where it cannot be written, what was built counts all the same."""
    own = read_table(places.measured)
    try:
        write_table(brought_up_to_date(own, places.output, plan.jobs, outcomes.values()), places.measured)
    except OSError as error:
        say.note(f"{places.measured}: cannot be written ({error.strerror}); what jobs took is not kept.")


def _outcomes(plan: Plan, places: FarmPlaces, standing: Standing) -> dict[str, JobOutcome]:
    """The outcomes that there are now; those that were at hand are not read again."""
    left = (job.id for job in plan.jobs if job.id not in standing.at_hand)
    found = ((job, read_outcome(places.outcome(job))) for job in left)
    return {**standing.at_hand, **{job: outcome for job, outcome in found if outcome is not None}}


def _against(request: Request, places: FarmPlaces, say: Say) -> Path | None:
    """What the catalogue is compared with: as asked for, else itself as it was before this run.

    Raises:
        UserInput: it cannot be read, which is said before anything is built.
    """
    named = Path(request.against) if request.against is not None else places.catalogue
    if request.against is not None:
        read_catalogue(named)
        if not (places.catalogue.exists() and named.samefile(places.catalogue)):  # which this run replaces
            return named
    if not places.catalogue.is_file():
        return None
    shutil.copyfile(places.catalogue, places.earlier)
    try:
        read_catalogue(places.earlier)
    except UserInput:  # of an earlier version of ours, or cut off
        say.note(f"{places.catalogue}: cannot be read any more, so nothing is compared with it.")
        return None
    return places.earlier


def _memory_bytes(request: Request) -> int:
    if request.memory_gb is not None:
        return int(request.memory_gb * GB)
    return int(available_bytes() * MEMORY_SHARE)


def _tell(planned: Planned, say: Say) -> None:
    for note in planned.notes:
        say.note(note)
    if not planned.plan.jobs:
        first = planned.plan.unplanned[0]
        raise UserInput(f"{planned.plan.matrix}: nothing can be built of it: {first.sentence}")


def _farm_run(
    plan: Plan,
    places: FarmPlaces,
    standing: Standing,
    outcomes: Mapping[str, JobOutcome],
    start_s: float,
    unknown: Ended | None = None,
) -> FarmRun:
    """How far `plan` is; `unknown`: how a job ended that left no outcome, where that tells something."""
    kinds = []
    for kind in Kind:
        jobs = [job.id for job in plan.jobs if job.kind is kind]
        if jobs:
            ended = [outcomes[job].ended if job in outcomes else unknown for job in jobs]
            counts = {how.value: ended.count(how) for how in Ended if how is not Ended.DONE and how in ended}
            at_hand = sum(job in standing.at_hand for job in jobs)
            kinds.append(KindCount(kind, len(jobs), at_hand, ended.count(Ended.DONE), counts))
    seconds = round(time.monotonic() - start_s, 1)
    return FarmRun(plan.matrix, str(places.output), tuple(kinds), len(plan.unplanned), seconds)


def _interrupted(request: Request, plan: Plan | None, places: FarmPlaces, standing: Standing, start_s: float) -> Report:
    sentence = "Interrupted: nothing was started."
    extra: dict[str, object] = {}
    if plan is not None:
        outcomes = _outcomes(plan, places, standing)
        done = sum(outcome.ended is Ended.DONE for outcome in outcomes.values())
        sentence = f"Interrupted: {done} of {len(plan.jobs)} jobs are done and stay; the same command does the rest."
        extra[FARM] = _farm_run(plan, places, standing, outcomes, start_s)
    return Report(request, EXIT_INTERRUPTED, sentence, extra=extra)


def _report(
    request: Request,
    plan: Plan,
    places: FarmPlaces,
    standing: Standing,
    done: Catalogued,
    code: int,
    start_s: float,
) -> Report:
    run = _farm_run(plan, places, standing, _outcomes(plan, places, standing), start_s, Ended.LOST)
    if code != EXIT_DONE:
        run = replace(run, log=str(places.workflow_log))
    error = fault_of(done.catalogue)
    if error is not None and code != EXIT_DONE:
        begun = any(places.outcome(job.id).exists() for job in plan.jobs if job.id not in standing.at_hand)
        at_last = "" if begun else f", at last: `{last_line(places.workflow_log):.200}`"
        error = f"{error} What Snakemake said is in {places.workflow_log}{at_last}."
    outcome = replace(NOTHING, files=tuple(map(str, done.files)))
    return Report(request, exit_code_of(done.catalogue), error, outcome, extra={FARM: run, **extra_of(done)})
