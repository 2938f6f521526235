"""The one sentence about how a build ended, from what is known of it; test_build_faults.py has real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import Shortage
from engine.child import Cause, ChildResult, Limits
from engine.endings import (
    LogTail,
    WorkerReport,
    engine_fault,
    failure_sentence,
    shortage_of,
    was_stopped_by_log,
)

LIMITS = Limits(timeout_s=90.0, memory_bytes=4 * 10**9, log_bytes=256 * 10**6)
REASON = "weights are missing"
SIGSEGV, SIGKILL, SIGTERM = 11, 9, 15


def ended(
    exit_code: int | None = 0, signal: int | None = None, cause: Cause = Cause.ITSELF, peak_rss_bytes: int = 10**9
) -> ChildResult:
    """A child that ended so."""
    reason = REASON if cause is Cause.READER else None
    return ChildResult(exit_code, signal, cause, reason, wall_s=1.0, cpu_s=1.0, peak_rss_bytes=peak_rss_bytes)


def killed(signal: int, cause: Cause = Cause.ITSELF, peak_rss_bytes: int = 10**9) -> ChildResult:
    """A child that a signal ended."""
    return ended(None, signal, cause, peak_rss_bytes)


def sentence(result: ChildResult, report: WorkerReport, tail: LogTail) -> str | None:
    return failure_sentence(result, report, tail, LIMITS, "rk3588", Path("/opt/python"))


BUILDING = WorkerReport(step="build")
SAID = WorkerReport(step="build", error="build returned -1")
COMPILING = LogTail(errors=("E one", "E two"), last="D last", stage="compiling")

SENTENCES = [
    pytest.param(ended(), WorkerReport(step="done"), COMPILING, None, id="well"),
    pytest.param(
        killed(SIGTERM, Cause.TIME),
        BUILDING,
        COMPILING,
        "The build for rk3588 in the step build (compiling) was stopped at its time limit of 90 s; give it more time.",
        id="time",
    ),
    pytest.param(
        killed(SIGTERM, Cause.MEMORY, peak_rss_bytes=4_321_000_000),
        BUILDING,
        LogTail(),
        "The build for rk3588 in the step build was stopped: it held 4.32 GB, more than its limit of 4 GB; raise the "
        "limit, or build a narrower window.",
        id="memory, in powers of ten",
    ),
    pytest.param(
        killed(SIGTERM, Cause.LOG_SIZE),
        BUILDING,
        LogTail(last="D again"),
        "The build for rk3588 in the step build was stopped: it printed more than 256 MB, and would fill the disk. "
        "Its last line was `D again`.",
        id="log size",
    ),
    pytest.param(
        killed(SIGTERM, Cause.READER),
        BUILDING,
        COMPILING,
        f"The build for rk3588 was stopped: {REASON}",
        id="stopped by the log",
    ),
    pytest.param(
        killed(SIGTERM, Cause.READER),
        SAID,
        COMPILING,
        f"The build for rk3588 was stopped: {REASON}",
        id="stopped by the log after the worker failed and hung",
    ),
    pytest.param(
        ended(3, cause=Cause.READER),
        SAID,
        COMPILING,
        "The build for rk3588 in the step build (compiling) failed: build returned -1. The toolkit said `E one`, "
        "`E two`.",
        id="failed by itself before the log could stop it",
    ),
    pytest.param(
        killed(SIGTERM, Cause.READER),
        BUILDING,
        LogTail(disk_full=True),
        "The disk is full: the build for rk3588 in the step build could not write. Free some space (TMPDIR moves its "
        "scratch files).",
        id="disk full, whatever the log says besides",
    ),
    pytest.param(
        killed(SIGTERM),
        SAID,
        LogTail(),
        "The build for rk3588 in the step build was ended from outside (SIGTERM).",
        id="terminated",
    ),
    pytest.param(
        killed(SIGKILL),
        BUILDING,
        LogTail(),
        "The build for rk3588 in the step build was killed from outside (SIGKILL), as the kernel does when memory runs "
        "out; it held 1 GB of memory. Free some memory, or build a narrower window.",
        id="killed",
    ),
    pytest.param(
        killed(SIGSEGV),
        BUILDING,
        LogTail(last="x"),
        "The toolkit crashed for rk3588 in the step build: SIGSEGV (Segmentation fault). Its last line was `x`.",
        id="crash",
    ),
    pytest.param(
        killed(SIGSEGV, peak_rss_bytes=3_900_000_000),
        BUILDING,
        LogTail(),
        "The toolkit crashed for rk3588 in the step build: SIGSEGV (Segmentation fault). Memory may have run out: it "
        "held 3.9 GB of memory. It printed nothing.",
        id="crash near the memory limit",
    ),
    pytest.param(
        ended(4),
        WorkerReport(step="import", error="ImportError: no rknn"),
        LogTail(),
        "The converter environment of /opt/python is broken: ImportError: no rknn. `rknn-tts doctor` shows what it "
        "holds; remove its folder to have it made again.",
        id="environment",
    ),
    pytest.param(
        ended(3),
        SAID,
        LogTail(errors=("E build: build returned -1",)),
        "The build for rk3588 in the step build failed: build returned -1.",
        id="failed with nothing more to say",
    ),
    pytest.param(
        ended(77),
        WorkerReport(),
        LogTail(last="y" * 300),
        f"The build for rk3588 in the step start ended with exit code 77. Its last line was `{'y' * 200}`.",
        id="exit code",
    ),
    pytest.param(
        ended(),
        BUILDING,
        LogTail(),
        "The build for rk3588 in the step build ended without an error before its end. It printed nothing.",
        id="early end",
    ),
]


@pytest.mark.parametrize(("result", "report", "tail", "wanted"), SENTENCES)
def test_failure_sentence_when_the_build_ended(
    result: ChildResult, report: WorkerReport, tail: LogTail, wanted: str | None
) -> None:
    assert sentence(result, report, tail) == wanted


@pytest.mark.parametrize(
    ("result", "report", "tail", "wanted"),
    [
        (killed(SIGTERM, Cause.READER), BUILDING, LogTail(), True),
        (killed(SIGTERM, Cause.READER), SAID, LogTail(), True),
        (ended(0, cause=Cause.READER), WorkerReport(step="done"), LogTail(), True),
        (ended(3, cause=Cause.READER), SAID, LogTail(), False),
        (killed(SIGTERM, Cause.READER), WorkerReport(error="x", disk_full=True), LogTail(), False),
        (killed(SIGTERM, Cause.READER), BUILDING, LogTail(disk_full=True), False),
        (killed(SIGTERM, Cause.TIME), BUILDING, LogTail(), False),
        (killed(SIGTERM), BUILDING, LogTail(), False),
    ],
)
def test_build_was_stopped_by_its_log_when_nothing_else_ended_it(
    result: ChildResult, report: WorkerReport, tail: LogTail, wanted: bool
) -> None:
    assert was_stopped_by_log(result, report, tail) is wanted


@pytest.mark.parametrize(
    ("result", "report", "tail", "wanted"),
    [
        (killed(SIGTERM, Cause.MEMORY), BUILDING, LogTail(), Shortage.MEMORY),
        (killed(SIGKILL, Cause.MEMORY), BUILDING, LogTail(), Shortage.MEMORY),
        (killed(SIGKILL), BUILDING, LogTail(), Shortage.MEMORY),
        # These signals are ours, for another reason.
        (killed(SIGKILL, Cause.TIME), BUILDING, LogTail(), None),
        (killed(SIGKILL, Cause.LOG_SIZE), BUILDING, LogTail(), None),
        (killed(SIGKILL, Cause.READER), BUILDING, LogTail(), None),
        (killed(SIGTERM), BUILDING, LogTail(), None),
        (killed(SIGSEGV), BUILDING, LogTail(), None),
        (ended(3), SAID, COMPILING, None),
        (ended(3), WorkerReport(error="OSError", disk_full=True), LogTail(), Shortage.DISK),
        (ended(1), WorkerReport(), LogTail(disk_full=True), Shortage.DISK),
        # What is full is told; that it was killed for it is not the reason.
        (killed(SIGKILL), BUILDING, LogTail(disk_full=True), Shortage.DISK),
    ],
)
def test_shortage_is_told_when_memory_or_room_was_missing(
    result: ChildResult, report: WorkerReport, tail: LogTail, wanted: Shortage | None
) -> None:
    assert shortage_of(result, report, tail) is wanted


@pytest.mark.parametrize(
    ("data", "words"),
    [(None, "wrote no engine"), (b"", "an empty engine"), (b"<html>", "starts with b'<htm'"), (b"RKNN...", None)],
)
def test_engine_fault_names_it_when_the_file_is_no_engine(
    tmp_path: Path, data: bytes | None, words: str | None
) -> None:
    path = tmp_path / "engine.rknn"
    if data is not None:
        path.write_bytes(data)
    fault = engine_fault(path)
    assert fault is None if words is None else words in str(fault)
