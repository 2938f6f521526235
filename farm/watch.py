"""Runs one command of a job and watches it: nothing of it is left when it has ended, or when we are told to end.

SIGTERM, SIGINT and SIGHUP are blocked in the runner and taken where it waits, so none can come between two steps; what
a command leaves running becomes a child of ours (a subreaper), and is ended with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.processes import descendants, resident_bytes
from engine.warden import KILL_PERIOD_S, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG

WATCH_S = 0.2
"""How often memory is looked at; see engine/child.py for what it costs."""

OVER_PERIOD_S = 2.0
"""Between SIGTERM and SIGKILL where a command takes more memory than it may: it grows on meanwhile."""

TERM_PERIOD_S = 12.0
"""The same where we are told to end: as long as rknn-tts needs to end its toolkit and tidy up
(rknn_tts/many_processes.py)."""

REST_PERIOD_S = 2.0
"""Between a command's end and SIGKILL for what it left: the warden of a toolkit (engine/warden.py) needs one second to
end it and to remove its folder."""

GIVE_UP_S = 2 * KILL_PERIOD_S
"""After which what is left waits inside the kernel, for a disk that does not answer."""

STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

_TAKEN = STOPPING | {signal.SIGCHLD}
_POLL_S = 0.02


class Stopped(Exception):
    """We were told to end; what was running has ended."""


@dataclass(frozen=True)
class Watched:
    """How a command ended.

    Attributes:
        code: its exit code; minus the signal's number where one ended it.
        over: whether it was ended for taking more memory than it may.
        wall_s, cpu_s: time on the clock, and of processors, with all that it waited for.
        peak_bytes: most resident memory of all its processes at one time, as sampled.
    """

    code: int
    over: bool
    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class _Ended:
    code: int
    cpu_s: float


def begin(parent: int | None) -> None:
    """Prepares this process, once, before anything is started: it is told to end when `parent` has.

    Raises:
        Stopped: `parent` has ended already.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if parent is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            raise Stopped


def watch(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], out: Path, log: Path, limit_bytes: int
) -> Watched:
    """Run `command` in `folder`, its stdout into the file `out`, its stderr behind what is in the file `log`.

    Raises:
        Stopped: we were told to end meanwhile.
        OSError: it cannot be started, or a file cannot be written.
    """
    ours = os.getpid()
    start_s = time.monotonic()
    with out.open("wb") as out_file, log.open("ab") as log_file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=log_file,
            start_new_session=True,
            preexec_fn=lambda: _begin_child(ours),  # safe: we have one thread
        )
    peak_bytes, over = 0, False
    try:
        while True:
            _wait(WATCH_S)
            ended = _ended(process.pid)
            if ended:
                break
            resident = resident_bytes(descendants(ours))
            peak_bytes = max(peak_bytes, resident)
            if resident > limit_bytes:
                over = True
                ended = _end(process.pid, OVER_PERIOD_S)
                break
    except Stopped:
        _end(process.pid, TERM_PERIOD_S)
        raise
    finally:
        process.returncode = 0  # it is waited for here, not by subprocess
        _end_rest()
    return Watched(
        code=ended.code,
        over=over,
        wall_s=time.monotonic() - start_s,
        cpu_s=ended.cpu_s,
        peak_bytes=peak_bytes,
    )


def _begin_child(parent: int) -> None:
    """In the child, before the command: it hears signals again, and is told to end when we have, even by SIGKILL."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TAKEN)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _wait(seconds: float) -> None:
    """Waits until a child ends, at most `seconds`.

    Raises:
        Stopped: we were told to end.
    """
    taken = signal.sigtimedwait(_TAKEN, seconds)
    if taken is not None and taken.si_signo in STOPPING:
        raise Stopped


def _ended(pid: int) -> _Ended | None:
    """How the child `pid` ended; None while it runs."""
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    return _Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime) if ended else None


def _end(pid: int, period_s: float) -> _Ended:
    """End the command `pid`, which leads a process group, as Ctrl-C does, and by force after `period_s`."""
    for number, wait_s in ((signal.SIGTERM, period_s), (signal.SIGKILL, float("inf"))):
        deadline_s = time.monotonic() + wait_s
        os.killpg(pid, number)
        while time.monotonic() < deadline_s:
            if ended := _ended(pid):
                return ended
            time.sleep(_POLL_S)
    raise AssertionError("nothing outlives SIGKILL for ever")


def _end_rest() -> None:
    """End what a command has left, all of which is below us: it has a moment to end by itself."""
    start_s = time.monotonic()
    while rest := descendants(os.getpid()):
        for process in rest:
            if process.zombie:
                _reap(process.pid)
            elif time.monotonic() - start_s > REST_PERIOD_S:
                _kill(process.pid)
        if time.monotonic() - start_s > GIVE_UP_S:
            return
        time.sleep(_POLL_S)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # its parent, which is not us, has yet to
        return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it ended in between
        return


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
