"""One attempt at a job: its commands in order, and the outcome, or the note for the next attempt."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contracts.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, FULL, Shortage
from contracts.files import sha256_of
from farm.command_report import CommandReport, read_command_report
from farm.died import Died, write_died
from farm.jobs import ENGINES, EXPORTS, Job, Kind
from farm.outcomes import Ended, JobOutcome, MadeFile, read_outcome, write_outcome
from farm.places import FarmPlaces
from farm.settings import Settings
from farm.watch import Watched, watch

CACHE_VARIABLE = "RKNN_TTS_CACHE"
"""engine/cache.py reads it."""

CHECKPOINTS_FOLDER = "checkpoints"
"""Where rknn_tts/steps.py keeps in a cache what packages carry."""

NODE_VARIABLES = ("SLURMD_NODENAME", "NODE_NAME")
"""Where SLURM, and the farm's profile for Kubernetes, say on which node a job runs."""

GB = 10**9

DISK_ATTEMPTS = 2
"""A job is tried once more where room was wanting: alone its neighbours' files are gone, and on a cluster it may meet
another node's disk. What is full then stays full."""

_AGAIN = frozenset({Ended.MEMORY, Ended.DISK, Ended.LOST})


@dataclass(frozen=True)
class Allotment:
    """What an attempt may have.

    Attributes:
        attempt: which one it is, from 1.
        last: whether there is no other.
        memory_bytes: of all its processes.
        alone: whether it has its machine to itself.
    """

    attempt: int
    last: bool
    memory_bytes: int
    alone: bool = False


@dataclass(frozen=True)
class _Verdict:
    """How the attempt ended, and why where not well."""

    ended: Ended
    sentence: str | None = None


@dataclass
class _Tally:
    """What the commands came to so far."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    files: list[Path] = field(default_factory=list)
    models: list[Path] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    report: Path | None = None

    def add(self, watched: Watched, report: CommandReport | None) -> None:
        """Takes up one command's end."""
        self.wall_s += watched.wall_s
        self.cpu_s += watched.cpu_s
        self.peak_bytes = max(self.peak_bytes, watched.peak_bytes)
        if report is not None:
            self.files += report.files
            self.models += report.models
            self.reused += report.reused


def attempt_job(job: Job, places: FarmPlaces, settings: Settings, allotment: Allotment) -> bool:
    """Run the commands of `job`; whether its outcome is written: if not, another attempt may mend it.

    Raises:
        Stopped: we were told to end; nothing is left running, and there is no outcome.
        OSError: a file of the farm's own cannot be written.
    """
    started_s, tally = time.time(), _Tally()
    try:
        try:
            verdict = _run(job, places, settings, allotment, tally)
            files = tuple(_made(path, places) for path in tally.files) if verdict.ended is Ended.DONE else ()
        except OSError as error:
            ended = Ended.DISK if error.errno in FULL else Ended.LOST
            verdict, files = _Verdict(ended, f"{error.filename or places.own}: {error.strerror}."), ()
    finally:
        if job.kind is Kind.TWICE:
            shutil.rmtree(places.scratch / job.id, ignore_errors=True)
    if _try_again(verdict, allotment):
        died = Died(job.id, allotment.attempt, verdict.ended, verdict.sentence or "", node_name(), tally.peak_bytes)
        write_died(died, places.died(job.id))
        return False
    outcome = JobOutcome(
        job=job.id,
        ended=verdict.ended,
        sentence=verdict.sentence,
        node=node_name(),
        attempt=allotment.attempt,
        started_s=started_s,
        wall_s=tally.wall_s,
        cpu_s=tally.cpu_s,
        peak_bytes=tally.peak_bytes,
        files=files,
        models=tuple(_relative(path, places) for path in tally.models) if files else (),
        reused=tuple(tally.reused),
        report=None if tally.report is None else _relative(tally.report, places),
    )
    write_outcome(outcome, places.outcome(job.id))
    if verdict.ended not in _AGAIN:
        places.died(job.id).unlink(missing_ok=True)
    return True


def node_name() -> str:
    """The name of the machine, as the cluster has it where there is one."""
    return next((os.environ[name] for name in NODE_VARIABLES if os.environ.get(name)), socket.gethostname())


def _try_again(verdict: _Verdict, allotment: Allotment) -> bool:
    if verdict.ended is Ended.DISK and allotment.attempt >= DISK_ATTEMPTS:
        return False
    if verdict.ended is Ended.MEMORY and allotment.alone:
        return False  # there is no more to be had
    return verdict.ended in _AGAIN and not allotment.last


def _run(job: Job, places: FarmPlaces, settings: Settings, allotment: Allotment, tally: _Tally) -> _Verdict:
    """Runs the commands up to the first that does not go well, and takes up in `tally` what they came to."""
    needs = {need: read_outcome(places.outcome(need)) for need in job.needs}
    for need, outcome in needs.items():
        if outcome is None or outcome.ended is not Ended.DONE:
            return _Verdict(Ended.WAITING, _waiting_sentence(need, outcome))
    folder = places.output / job.folder
    if job.kind is Kind.TWICE:
        shutil.rmtree(places.scratch / job.id, ignore_errors=True)  # of an attempt that was killed
    folder.mkdir(parents=True, exist_ok=True)
    if job.kind is Kind.TWICE:
        _share_checkpoints(_own_cache(job, places))
    log = places.log(job.id)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    given = [places.output / made.path for outcome in needs.values() if outcome for made in outcome.files]
    graphs = [places.output / model for outcome in needs.values() if outcome for model in outcome.models]
    for number, words in enumerate(job.commands):
        report = places.report(job.id, number)
        report.parent.mkdir(parents=True, exist_ok=True)
        # What this job has made itself goes before what it was given: one that is made twice starts over.
        line = _with_files(words, EXPORTS, tally.models or graphs, folder)
        line = _with_files(line, ENGINES, _engines(given), folder)
        if line[0] == "compile":
            line = [*line, "--memory", f"{allotment.memory_bytes / GB:.3f}"]
        environment = _environment(job, places)
        watched = watch([settings.program, *line], folder, environment, report, log, allotment.memory_bytes)
        told = read_command_report(report, folder)
        tally.add(watched, told)
        tally.report = None if told is None else report
        verdict = _judged(watched, told, allotment, log)
        if verdict.ended is not Ended.DONE:
            return verdict
    return _Verdict(Ended.DONE)


def _judged(watched: Watched, told: CommandReport | None, allotment: Allotment, log: Path) -> _Verdict:
    """How the job ends with a command that ended so."""
    if watched.over:
        return _Verdict(
            Ended.MEMORY,
            f"It took {watched.peak_bytes / GB:.2f} GB of memory, and may take {allotment.memory_bytes / GB:.2f} GB.",
        )
    if told is None or watched.code not in (EXIT_DONE, EXIT_FAILED, EXIT_REFUSED):
        return _Verdict(Ended.LOST, f"The command {_ending(watched.code)} without a word of its own; see {log}.")
    if watched.code == EXIT_DONE:
        return _Verdict(Ended.DONE)
    sentence = told.error or f"The command ended with exit code {watched.code}; see {log}."
    if told.shortage is not None:
        return _Verdict(Ended.MEMORY if told.shortage is Shortage.MEMORY else Ended.DISK, sentence)
    return _Verdict(Ended.REFUSED if watched.code == EXIT_REFUSED else Ended.FAILED, sentence)


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _waiting_sentence(need: str, outcome: JobOutcome | None) -> str:
    if outcome is None:
        return f"It starts from what {need} makes, whose outcome is damaged; run the farm again."
    return f"It starts from what {need} makes, which ended as {outcome.ended.value}: {outcome.sentence}"


def _engines(files: Sequence[Path]) -> list[Path]:
    return [path for path in files if path.suffix == ".rknn"]


def _with_files(words: Sequence[str], word: str, files: Sequence[Path], folder: Path) -> list[str]:
    """`words` with `files`, as seen from `folder`, in the place of `word`."""
    line: list[str] = []
    for one in words:
        line += [os.path.relpath(path, folder) for path in files] if one == word else [one]
    return line


def _environment(job: Job, places: FarmPlaces) -> Mapping[str, str]:
    """The variables that a job's commands see: ours; what is made twice finds no finished step."""
    if job.kind is not Kind.TWICE:
        return os.environ
    return {**os.environ, CACHE_VARIABLE: str(_own_cache(job, places))}


def _own_cache(job: Job, places: FarmPlaces) -> Path:
    """The cache of a job that is made twice."""
    return places.scratch / job.id / "cache"


def _share_checkpoints(cache: Path) -> None:
    """Let `cache` have the checkpoints that were fetched for all: they are checked by digest, and no step's result."""
    cache.mkdir(parents=True, exist_ok=True)
    ours = os.environ.get(CACHE_VARIABLE)
    if ours and (Path(ours) / CHECKPOINTS_FOLDER).is_dir():
        (cache / CHECKPOINTS_FOLDER).symlink_to(Path(ours) / CHECKPOINTS_FOLDER)


def _made(path: Path, places: FarmPlaces) -> MadeFile:
    return MadeFile(_relative(path, places), sha256_of(path), path.stat().st_size)


def _relative(path: Path, places: FarmPlaces) -> str:
    return os.path.relpath(path, places.output)
