"""`build_engine`: an ONNX to an engine, through the vendor toolkit in a child process of the converter environment.

That process is the boundary of versions, crashes, the log, the working directory and memory (design, Engine). Every way
it can end is one exception with one sentence.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from contracts.errors import GateFailure, ToolFailure
from contracts.serial import from_json
from engine.child import LOG_LIMIT_BYTES, Cause, ChildResult, Limits, private_folder, run_child
from engine.converter import child_environment, prepare
from engine.endings import DISK_FULL_TEXT, LogTail, WorkerReport, engine_fault, failure_sentence
from engine.request import DEFAULT_TIMEOUT_S, BuildRequest, check_request
from engine.result import ENGINE_FILE, LINES_FILE, BuildResult, keep_build, read_build
from engine.stages import stage_of
from engine.worker import RESULT_FILE
from logs.live import LiveJudge

__all__ = ["DEFAULT_TIMEOUT_S", "BuildRequest", "BuildResult", "build_engine", "read_build"]

_TAIL_ERRORS = 3
"""So many of the last `E` lines are quoted when a build fails."""


def build_engine(request: BuildRequest, progress: Callable[[str], None] | None = None) -> BuildResult:
    """Build the engine that `request` describes; `progress` gets the name of each stage as it begins.

    Raises:
        UserInput: there is no such interpreter or ONNX, or the custom string does not fit.
        GateFailure: the log holds something that no engine may have; the build was stopped there.
        ToolFailure: the toolkit crashed, was killed, ran out of time, memory or disk, or said no.
    """
    check_request(request)
    limits = Limits(request.timeout_s, request.memory_limit_bytes, LOG_LIMIT_BYTES)
    try:
        with private_folder() as folder:
            command = prepare(request, folder)
            with (folder / LINES_FILE).open("w", encoding="utf-8") as lines:
                reader = _Reader(LiveJudge(request.accepted).feed, lines.write, progress or (lambda _: None))
                child = run_child(
                    command,
                    folder=folder,
                    environment=child_environment(os.environ),
                    log=request.log,
                    limits=limits,
                    on_line=reader.take,
                )
            report = _read_report(folder / RESULT_FILE)
            sentence = failure_sentence(
                child, report, reader.tail(), limits, request.target, request.converter_python
            ) or engine_fault(folder / ENGINE_FILE)
            if sentence is not None:
                _fail(sentence, child, report, request.log)
            keep_build(folder, request.result_folder, child, report, windows=len(request.feeds))
    except OSError as error:
        raise ToolFailure(
            f"The build for {request.target} could not write its files: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}.",
            request.log,
        ) from error
    return read_build(request.result_folder)


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


def _fail(sentence: str, child: ChildResult, report: WorkerReport, log: Path) -> NoReturn:
    text = f"{sentence} The log is kept in {log}."
    if child.cause is Cause.READER and report.error is None:
        raise GateFailure(text, log=log)
    raise ToolFailure(text, log)
