"""`build_engine`: an ONNX to an engine, through the vendor toolkit in a child process of the converter environment.

That process is the boundary of versions, crashes, the log, the working directory and memory (design, Engine). Every way
it can end is one exception with one sentence. Two builds at once share nothing, not even the log: it is written in the
private folder, and put in its place at the end.

A build that crashes in one of the toolkit's own fuse rules is done once more without that rule.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from contracts.errors import FULL, Shortage, ToolFailure
from contracts.files import copy_whole
from contracts.serial import from_json
from contracts.verdicts import Verdict
from engine.child import LOG_LIMIT_BYTES, ChildResult, Limits, private_folder, run_child
from engine.converter import child_environment, prepare
from engine.endings import (
    DISK_FULL_TEXT,
    LogTail,
    StoppedByLog,
    WorkerReport,
    engine_fault,
    failure_sentence,
    shortage_of,
    was_stopped_by_log,
)
from engine.fuse_rules import crashed_rule
from engine.request import DEFAULT_TIMEOUT_S, BuildRequest, check_request
from engine.result import ENGINE_FILE, LINES_FILE, BuildResult, keep_build, read_build
from engine.stages import stage_of
from engine.worker import EXIT_STEP_FAILED, RESULT_FILE
from logs.judge import judge_log
from logs.live import LiveJudge

__all__ = ["DEFAULT_TIMEOUT_S", "BuildRequest", "BuildResult", "build_engine", "read_build"]

_RAW_FILE = "raw.log"

_TAIL_ERRORS = 3
"""So many of the last `E` lines are quoted when a build fails."""


def build_engine(
    request: BuildRequest,
    progress: Callable[[str], None] | None = None,
    again: Callable[[str], None] | None = None,
) -> BuildResult:
    """Build the engine that `request` describes.

    The limits of `request` hold for each of its attempts: there is a second one, and no third, where the first crashed
    in a fuse rule.

    Args:
        request: what to build.
        progress: told the name of each stage as it begins.
        again: told the fuse rule that the first attempt crashed in, before the second begins.

    Raises:
        UserInput: there is no such interpreter or ONNX, or the custom string does not fit.
        StoppedByLog: the log holds something that no engine may have; the build was stopped there.
        ToolFailure: the toolkit crashed, was killed, ran out of time, memory or disk, or said no.
    """
    check_request(request)
    try:
        _attempt(request, first_log(request.log), progress)
        with suppress(OSError):  # that of an earlier build tells of another one than the log beside it now
            first_log(request.log).unlink(missing_ok=True)
    except _RuleCrashed as crash:
        if crash.was_off:
            raise
        if again is not None:
            again(crash.rule)
        without = replace(request, disable_rules=(*request.disable_rules, crash.rule))
        with _told_of_the_first(crash):
            _attempt(without, request.log, progress)
    return read_build(request.result_folder)


def first_log(log: Path) -> Path:
    """Where the log of a first attempt is kept, whose second writes `log`."""
    return log.with_name(f"{log.stem}.first{log.suffix}")


class _RuleCrashed(ToolFailure):
    """A fuse rule of the toolkit raised; `was_off` where it was switched off by that name, which changed nothing."""

    def __init__(self, message: str, rule: str, was_off: bool) -> None:
        super().__init__(message)
        self.rule, self.was_off = rule, was_off


@contextmanager
def _told_of_the_first(crash: _RuleCrashed) -> Iterator[None]:
    """A failure of the second attempt says that it was one, and where the first one's log is."""
    try:
        yield
    except (StoppedByLog, ToolFailure) as error:
        told = f"This was the second attempt, without the toolkit's fuse rule {crash.rule}, in which the first crashed"
        if crash.log:
            told += f" (its log is {crash.log})"
        if isinstance(error, _RuleCrashed):
            told += f"; the second crashed in {'the same' if error.rule == crash.rule else error.rule}"
        error.args = (f"{error} {told}.",)
        raise


def _attempt(request: BuildRequest, crash_log: Path, progress: Callable[[str], None] | None) -> None:
    """One build in a folder of its own; where a fuse rule crashes that may be left out, its log goes to `crash_log`.

    Raises:
        _RuleCrashed: that happened.
        StoppedByLog, ToolFailure: see `build_engine`.
    """
    try:
        with private_folder() as folder:
            with _log_put_in_place(folder / _RAW_FILE, request.log, crash_log):
                child, report = _build(request, folder, progress or (lambda _: None))
            keep_build(folder, request.result_folder, child, report, len(request.feeds), request.disable_rules)
    except OSError as error:
        raise ToolFailure(
            f"The build for {request.target} could not write its files: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}.",
            request.log if request.log.is_file() else None,
            Shortage.DISK if error.errno in FULL else None,
        ) from error


@contextmanager
def _log_put_in_place(raw: Path, log: Path, crash_log: Path) -> Iterator[None]:
    """Puts the file `raw` in its place, whole, however the body ends; the build's own errors then say where.

    Raises:
        OSError: the body ended well, and the log cannot be written.
    """
    try:
        yield
    except BaseException as error:
        place = crash_log if isinstance(error, _RuleCrashed) and not error.was_off else log
        kept, sentence = _kept_log(raw, place)
        if isinstance(error, (StoppedByLog, ToolFailure)):
            error.args = (f"{error} {sentence}",)
            error.log = place if kept else None
        raise
    log.parent.mkdir(parents=True, exist_ok=True)
    copy_whole(raw, log)


def _kept_log(raw: Path, log: Path) -> tuple[bool, str]:
    """Puts the log of a failed build in its place; whether that went well, and a sentence about it."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        copy_whole(raw, log)
    except OSError as error:
        return False, f"The log could not be kept in {log} ({error.strerror or error})."
    return True, f"The log is kept in {log}."


def _build(request: BuildRequest, folder: Path, progress: Callable[[str], None]) -> tuple[ChildResult, WorkerReport]:
    """Runs the worker in `folder`, which holds all it made at the end; raises as `build_engine` does."""
    limits = Limits(request.timeout_s, request.memory_limit_bytes, LOG_LIMIT_BYTES)
    command = prepare(request, folder)
    with (folder / LINES_FILE).open("w", encoding="utf-8") as lines:
        reader = _Reader(LiveJudge(request.accepted).feed, lines.write, progress)
        child = run_child(
            command,
            folder=folder,
            environment=child_environment(os.environ),
            log=folder / _RAW_FILE,
            limits=limits,
            on_line=reader.take,
        )
    report, tail = _read_report(folder / RESULT_FILE), reader.tail()
    sentence = failure_sentence(child, report, tail, limits, request.target, request.converter_python)
    stopped = was_stopped_by_log(child, report, tail)
    # A worker that crashed may be too slow to say so before it is ended for its traceback.
    crashed = report.step == "build" and (stopped or child.exit_code == EXIT_STEP_FAILED)
    if sentence is not None and crashed and (rule := crashed_rule(_lines_of(folder / LINES_FILE))) is not None:
        raise _RuleCrashed(sentence, rule, was_off=rule in request.disable_rules)
    if sentence is not None and stopped:
        raise StoppedByLog(sentence, _verdicts_so_far(folder / LINES_FILE, request))
    sentence = sentence or engine_fault(folder / ENGINE_FILE)
    if sentence is not None:
        raise ToolFailure(sentence, shortage=shortage_of(child, report, tail))
    return child, report


def _verdicts_so_far(lines: Path, request: BuildRequest) -> list[Verdict]:
    """The verdicts on the log of a build that was stopped: that it has no end is no finding of its own."""
    judged = judge_log(_lines_of(lines), request.accepted)
    return [verdict for verdict in judged.verdicts if verdict.gate != "log.complete"]


def _lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")


class _Reader:
    """Takes a build's lines: writes them down, judges them, reports stages and remembers the end."""

    def __init__(
        self, judge: Callable[[str], str | None], write: Callable[[str], object], progress: Callable[[str], None]
    ) -> None:
        self._judge, self._write, self._progress = judge, write, progress
        self._errors: deque[str] = deque(maxlen=_TAIL_ERRORS)
        self._last = self._stage = ""
        self._disk_full = False

    def take(self, line: str) -> str | None:
        self._write(line + "\n")
        self._last = line
        self._disk_full = self._disk_full or DISK_FULL_TEXT in line
        if line.startswith("E ") and "Traceback" not in line and "rknn-toolkit2 version" not in line:
            self._errors.append(line)
        if (stage := stage_of(line)) and stage != self._stage:
            self._stage = stage
            self._progress(stage)
        return self._judge(line)

    def tail(self) -> LogTail:
        return LogTail(tuple(self._errors), self._last, self._stage, self._disk_full)


def _read_report(path: Path) -> WorkerReport:
    try:
        return from_json(WorkerReport, json.loads(path.read_text(encoding="utf-8")), RESULT_FILE)
    except (OSError, ValueError):  # it ended before its first step, or while it wrote this
        return WorkerReport()
