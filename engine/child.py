"""Supervises a child process: reads what it prints as it prints it, and ends it when it may not go on.

No process of it is left when `run_child` returns or raises, nor when we ourselves are killed (engine/warden.py).
Memory is watched as resident pages of all its processes: RLIMIT_AS would count address space, of which the toolkit
reserves 1.6 to 5 times what it touches (measured: 1137 MB for 702 MB, 625 MB for 125 MB), more with every thread.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from contracts.errors import ToolFailure
from contracts.serial import from_json
from engine.processes import descendants, resident_bytes
from engine.warden import KILL_PERIOD_S, Status
from logs.lines import LineSplitter

LOG_LIMIT_BYTES = 256 << 20
"""Default cap of a raw log: ten times the 100 001 REGTASK lines (17 MB) at which a build is stopped anyway, and more
than any build prints (Kokoro: under 4 MB)."""

GRACE_S = 1.0
"""Time between SIGTERM and SIGKILL. The toolkit has no handler for SIGTERM, so it ends at once."""

SETTLE_S = 0.5
"""How long a child may go on after its reader has said stop: it may be about to end by itself, and then what it still
says (a traceback, its own report) tells more than the line that its reader took exception to."""

_WATCH_S = 0.2
"""How often memory is looked at. One pass over /proc takes 1.2 ms with 86 processes (measured), so looking costs 0.6 %
of a core; a child that fills fresh memory, 1.5 GB a second (measured), is ended 0.3 GB too late."""

_CHUNK_BYTES = 1 << 16
_SLACK_S = 2.0


class Cause(str, Enum):
    """Why a child ended: by itself, or who ended it."""

    ITSELF = "itself"
    TIME = "time"
    MEMORY = "memory"
    LOG_SIZE = "log size"
    READER = "reader"


@dataclass(frozen=True)
class Limits:
    """What a child may use: wall time, resident memory of all its processes (None: no limit), bytes of log."""

    timeout_s: float
    memory_bytes: int | None = None
    log_bytes: int = LOG_LIMIT_BYTES
    grace_s: float = GRACE_S
    settle_s: float = SETTLE_S


@dataclass(frozen=True)
class ChildResult:
    """How a child ended.

    Attributes:
        exit_code: its exit code; None where a signal ended it.
        signal: the number of that signal, else None.
        cause: who ended it.
        reason: the sentence its reader gave, where `cause` is READER.
        wall_s, cpu_s: time on the clock, and of processors (user and system, with the children it waited for).
        peak_rss_bytes: largest resident memory of all its processes at one time, as sampled.
    """

    exit_code: int | None
    signal: int | None
    cause: Cause
    reason: str | None
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder in the system's temporary folder that nobody else can read, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rknn-tts-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_child(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    limits: Limits,
    on_line: Callable[[str], str | None],
) -> ChildResult:
    """Run `command` in `folder` to its end; its stdin is closed, fds 1 and 2 go into one pipe.

    The raw bytes go to the file `log`; every complete line, cleaned (logs.lines), goes to `on_line`. The first text
    that it returns stops the child, after `settle_s`.

    Raises:
        ToolFailure: the command cannot be started, or its processes cannot be ended.
        OSError: the log cannot be written (the child is ended first).
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb", buffering=0) as log_file:
        supervision = _Supervision(command, folder, environment, log_file, limits, on_line)
        try:
            supervision.follow()
        finally:
            status = supervision.finish()
    if status.survivors:
        raise ToolFailure(
            f"{status.survivors} processes of {Path(command[0]).name} could not be ended; they wait for a disk or a "
            f"driver that does not answer."
        )
    if status.wait_status is None:
        raise ToolFailure(f"The program could not be started: {status.error}.")
    return supervision.result(status, status.wait_status)


class _Supervision:
    """One running child. The calling order is: make, `follow`, `finish`, `result`."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        log_file: BinaryIO,
        limits: Limits,
        on_line: Callable[[str], str | None],
    ) -> None:
        self._limits, self._on_line, self._log_file = limits, on_line, log_file
        self._lines = LineSplitter()
        self._logged_bytes = self._peak_rss_bytes = 0
        self._cause = Cause.ITSELF
        self._reason: str | None = None
        self._stop_at_s = float("inf")
        self._start_s = time.monotonic()
        self._status_text = b""
        self._status_fd, status_write_fd = os.pipe()
        warden = [sys.executable, "-I", "-S", str(Path(__file__).with_name("warden.py"))]
        try:
            self._warden = subprocess.Popen(
                [*warden, str(folder), str(status_write_fd), str(limits.grace_s), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd="/",
                pass_fds=[status_write_fd],
                start_new_session=True,  # Ctrl-C reaches us alone
                bufsize=0,
            )
        except BaseException:
            os.close(self._status_fd)
            raise
        finally:
            os.close(status_write_fd)

    def follow(self) -> None:
        """Reads until the child and all it started have ended."""
        assert self._warden.stdout is not None
        log_fd = self._warden.stdout.fileno()
        give_up_s, next_look_s = float("inf"), 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(log_fd, selectors.EVENT_READ)
            selector.register(self._status_fd, selectors.EVENT_READ)
            while selector.get_map() and time.monotonic() < give_up_s:
                for key, _ in selector.select(_WATCH_S):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    elif key.fd == log_fd:
                        self._take(chunk)
                    else:
                        self._status_text += chunk
                now_s = time.monotonic()
                if now_s >= min(next_look_s, self._stop_at_s):
                    next_look_s = now_s + _WATCH_S
                    self._look(now_s)
                if give_up_s == float("inf") and (
                    now_s >= self._stop_at_s or self._status_fd not in selector.get_map()
                ):
                    give_up_s = now_s + self._limits.grace_s + KILL_PERIOD_S + _SLACK_S
        self._hand_on(self._lines.close())

    def finish(self) -> Status:
        """Ends the child where it still runs, and closes everything. Safe to call at any point."""
        self._stop()
        lifeline, output = self._warden.stdin, self._warden.stdout
        assert lifeline is not None
        assert output is not None
        output.close()  # a child that is still printing gets SIGPIPE
        try:
            self._warden.wait(self._limits.grace_s + KILL_PERIOD_S + _SLACK_S)
        except subprocess.TimeoutExpired:
            self._warden.kill()
            self._warden.wait()
        finally:
            lifeline.close()
            while chunk := os.read(self._status_fd, _CHUNK_BYTES):
                self._status_text += chunk
            os.close(self._status_fd)
        if not self._status_text:
            return Status(None, error="the process that watches it was killed")
        return from_json(Status, json.loads(self._status_text))

    def result(self, status: Status, wait_status: int) -> ChildResult:
        """What there is to say about the child that ended with `status`."""
        code = os.waitstatus_to_exitcode(wait_status)
        return ChildResult(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cause=self._cause,
            reason=self._reason,
            wall_s=time.monotonic() - self._start_s,
            cpu_s=status.cpu_s,
            peak_rss_bytes=self._peak_rss_bytes,
        )

    def _take(self, chunk: bytes) -> None:
        """Keeps `chunk` in the log up to its cap, and hands on the lines that it completes."""
        room = self._limits.log_bytes - self._logged_bytes
        self._log_file.write(chunk[:room])
        self._logged_bytes += min(len(chunk), room)
        if len(chunk) > room:
            self._end(Cause.LOG_SIZE, now_s=time.monotonic())
        self._hand_on(self._lines.feed(chunk))

    def _hand_on(self, lines: Sequence[str]) -> None:
        for line in lines:
            reason = self._on_line(line)
            if reason and self._cause is Cause.ITSELF:
                self._cause, self._reason = Cause.READER, reason
                self._stop_at_s = time.monotonic() + self._limits.settle_s

    def _look(self, now_s: float) -> None:
        """Measures memory and time, and ends the child past a limit."""
        resident = resident_bytes(descendants(self._warden.pid))
        self._peak_rss_bytes = max(self._peak_rss_bytes, resident)
        if self._limits.memory_bytes is not None and resident > self._limits.memory_bytes:
            self._end(Cause.MEMORY, now_s)
        elif now_s - self._start_s > self._limits.timeout_s:
            self._end(Cause.TIME, now_s)
        if now_s >= self._stop_at_s:
            self._stop()

    def _end(self, cause: Cause, now_s: float) -> None:
        if self._cause is Cause.ITSELF:
            self._cause = cause
        self._stop_at_s = min(self._stop_at_s, now_s)

    def _stop(self) -> None:
        assert self._warden.stdin is not None
        try:
            self._warden.stdin.write(b"s")
        except BrokenPipeError:  # the warden has ended, and so has everything below it
            return
