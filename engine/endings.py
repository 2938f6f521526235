"""Turns the way a build ended into one sentence for the person at the command line."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contracts.errors import GateFailure, Shortage
from contracts.serial import Json
from engine.child import Cause, ChildResult, Limits
from engine.worker import EXIT_DONE, EXIT_ENVIRONMENT, EXIT_STEP_FAILED

DISK_FULL_TEXT = "No space left on device"
"""strerror(ENOSPC): in the message of whatever ran into it."""

ENGINE_MAGIC = b"RKNN"
"""First bytes of every engine (measured on 2.3.2 and 2.5.0 files)."""

GB_BYTES = 10**9
"""Bytes of a GB, in what we are told and in what we say."""

_QUOTED_CHARS = 200

_NEAR_THE_LIMIT = 0.8
"""Share of the memory limit from which on a crash is said to be likely a failed allocation. It only chooses a sentence:
memory is looked at now and then, and what was refused was never resident, so the peak that was seen is always below the
one that was met (by 0.3 GB a look, see `engine.child`: a fifth of 1.5 GB, twice what Piper's build takes)."""


class StoppedByLog(GateFailure):
    """A build was stopped at a line that no engine may have; `verdicts` are those on the log up to there."""


@dataclass(frozen=True)
class WorkerReport:
    """The worker's `result.json`; the defaults are what holds where it wrote none.

    Attributes:
        step: the last step it began, "done" at the end.
        codes: what the toolkit returned for each step.
        error: what a step that failed said.
        disk_full: whether that was ENOSPC.
        versions: of the libraries in the converter environment.
        outputs: the ONNX's output names in order.
        fixed_addresses: whether the compiler's memory had the addresses that it has in every build.
        peak_rss_bytes: largest resident memory of the worker; 0 where it could not say.
    """

    step: str = "start"
    codes: dict[str, Json] = field(default_factory=dict)
    error: str | None = None
    disk_full: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    fixed_addresses: bool = False
    peak_rss_bytes: int = 0


@dataclass(frozen=True)
class LogTail:
    """What the end of a log says: the last `E` lines, the last line, the last stage, whether the disk was full."""

    errors: tuple[str, ...] = ()
    last: str = ""
    stage: str = ""
    disk_full: bool = False


def was_stopped_by_log(result: ChildResult, report: WorkerReport, tail: LogTail) -> bool:
    """Whether it is the log that ended the build, and not what the worker said or met before it was ended.

    A worker that has said why it failed and then does not end is ended by us: that signal is ours, not its reason.
    """
    if result.cause is not Cause.READER or report.disk_full or tail.disk_full:
        return False
    return report.error is None or result.signal is not None


def failure_sentence(
    result: ChildResult, report: WorkerReport, tail: LogTail, limits: Limits, target: str, python: Path
) -> str | None:
    """Why the build has no engine, in a sentence or two; None where it ended well."""
    where = f"for {target} in the step {report.step}" + (f" ({tail.stage})" if tail.stage else "")
    if result.cause is Cause.TIME:
        return f"The build {where} was stopped at its time limit of {limits.timeout_s:g} s; give it more time."
    if result.cause is Cause.MEMORY:
        return (
            f"The build {where} was stopped: it held {_gb(result.peak_rss_bytes)}, more than its limit of "
            f"{_gb(limits.memory_bytes or 0)}; raise the limit, or build a narrower window."
        )
    if result.cause is Cause.LOG_SIZE:
        return (
            f"The build {where} was stopped: it printed more than {limits.log_bytes / 1e6:.3g} MB, and would fill the "
            f"disk. {_last_line(tail)}"
        )
    if report.disk_full or tail.disk_full:
        return f"The disk is full: the build {where} could not write. Free some space (TMPDIR moves its scratch files)."
    if was_stopped_by_log(result, report, tail):
        return f"The build for {target} was stopped: {result.reason}"
    if result.signal is not None:
        return _signal_sentence(result, limits, where, tail)
    if result.exit_code == EXIT_ENVIRONMENT:
        reason = (report.error or "it said nothing").rstrip(".")
        return (
            f"The converter environment of {python} is broken: {reason}. `rknn-tts doctor` shows what it holds; "
            f"remove its folder to have it made again."
        )
    if result.exit_code == EXIT_STEP_FAILED:
        said = [line for line in tail.errors if report.error is None or report.error not in line]
        return f"The build {where} failed: {report.error}." + (f" The toolkit said {_quoted(said)}." if said else "")
    if result.exit_code != EXIT_DONE:
        return f"The build {where} ended with exit code {result.exit_code}. {_last_line(tail)}"
    if report.step != "done":
        return f"The build {where} ended without an error before its end. {_last_line(tail)}"
    return None


def shortage_of(result: ChildResult, report: WorkerReport, tail: LogTail) -> Shortage | None:
    """What a build that has no engine lacked; the kernel's killer (SIGKILL) comes for memory."""
    if report.disk_full or tail.disk_full:
        return Shortage.DISK
    killed = result.cause is Cause.ITSELF and result.signal == signal.SIGKILL
    return Shortage.MEMORY if killed or result.cause is Cause.MEMORY else None


def engine_fault(engine: Path) -> str | None:
    """What is wrong with the file that the toolkit exported without an error; None where it is an engine."""
    if not engine.is_file():
        return "The toolkit reported success but wrote no engine."
    with engine.open("rb") as file:
        start = file.read(len(ENGINE_MAGIC))
    if not start:
        return "The toolkit reported success but wrote an empty engine."
    if start != ENGINE_MAGIC:
        return f"The toolkit reported success but what it wrote is no engine: it starts with {start!r}."
    return None


def _signal_sentence(result: ChildResult, limits: Limits, where: str, tail: LogTail) -> str:
    number = result.signal or 0
    known = number in {member.value for member in signal.Signals}
    name = signal.Signals(number).name if known else f"signal {number}"
    held = f"it held {_gb(result.peak_rss_bytes)} of memory"
    if number == signal.SIGKILL:
        return (
            f"The build {where} was killed from outside (SIGKILL), as the kernel does when memory runs out; {held}. "
            f"Free some memory, or build a narrower window."
        )
    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        return f"The build {where} was ended from outside ({name})."
    near = limits.memory_bytes is not None and result.peak_rss_bytes > _NEAR_THE_LIMIT * limits.memory_bytes
    hint = f" Memory may have run out: {held}." if near else ""
    said = f" It said {_quoted(tail.errors)}." if tail.errors else ""
    return f"The toolkit crashed {where}: {name} ({signal.strsignal(number)}).{hint}{said} {_last_line(tail)}"


def _last_line(tail: LogTail) -> str:
    return f"Its last line was {_quoted([tail.last])}." if tail.last else "It printed nothing."


def _quoted(lines: Sequence[str]) -> str:
    return ", ".join(f"`{line[:_QUOTED_CHARS]}`" for line in lines)


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / GB_BYTES:.3g} GB"
