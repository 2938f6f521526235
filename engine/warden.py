"""Stands between us and a child process, so that none of its processes outlives us, whatever happens to either side.

    python -I -S engine/warden.py FOLDER STATUS_FD GRACE_S COMMAND...

Runs COMMAND in FOLDER with stdin closed, and adopts every orphan below it. When the command ends, whatever it left
running is ended too, and one JSON object is written to STATUS_FD. The other end of our stdin is the lifeline: a byte
on it means "end them now"; its end means that whoever started us is gone: everything is ended and FOLDER is removed,
since nobody else will.

A process of its own because all of this needs one thread, signals and prctl, none of which a library may take from
its caller (whose threads also make `preexec_fn` unsafe).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.processes import Process

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
ADDR_NO_RANDOMIZE = 0x0040000  # sys/personality.h

STACK_BYTES = 8 << 20
"""The usual limit of a stack, Linux's own (`_STK_LIM`)."""

KILL_PERIOD_S = 5.0
"""How long SIGKILL may take; only a process stuck inside the kernel (a dead network disk) outlives it."""

_POLL_S = 0.01


@dataclass(frozen=True)
class Status:
    """What the warden writes. `wait_status` as of wait(2), None where the command could not be started or ended."""

    wait_status: int | None
    cpu_s: float = 0.0
    survivors: int = 0
    error: str | None = None


@dataclass(frozen=True)
class _Ended:
    wait_status: int
    cpu_s: float


def main(arguments: Sequence[str]) -> int:
    """Runs the command that `arguments` hold; see the module."""
    folder, status_fd, grace_s, *command = arguments
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_fd = _wake_up_when_a_child_ends()
    try:
        status, orphaned = _run(command, Path(folder), float(grace_s), wake_fd)
    except OSError as error:
        status, orphaned = Status(None, error=f"{command[0]}: {error.strerror}"), False
    if orphaned:
        shutil.rmtree(folder, ignore_errors=True)
        return 1
    os.write(int(status_fd), json.dumps(asdict(status)).encode())
    return 0


def _run(command: Sequence[str], folder: Path, grace_s: float, wake_fd: int) -> tuple[Status, bool]:
    """Runs `command` to its end; also says whether whoever started us is gone."""
    from engine.processes import descendants  # not at the top: __main__ makes it importable

    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_prepare)
    child.returncode = 0  # reaped below, not by this object
    _let_go_of_the_log()
    ended: dict[int, _Ended] = {}
    orphaned = False
    while child.pid not in ended:
        ready, _, _ = select.select([0, wake_fd], [], [])
        if wake_fd in ready:
            os.read(wake_fd, 4096)
        _reap(ended)
        if 0 in ready:
            orphaned = not os.read(0, 1)
            break
    survivors = _end_all(lambda: descendants(os.getpid()), ended, grace_s)
    mine = ended.get(child.pid)
    if mine is None:
        return Status(None, survivors=survivors, error="it could not be ended"), orphaned
    return Status(mine.wait_status, mine.cpu_s, survivors), orphaned


def _end_all(living: Callable[[], list[Process]], ended: dict[int, _Ended], grace_s: float) -> int:
    """TERM, then KILL to every one of `living`; returns how many are left (none, but for a broken kernel or disk)."""
    left = 0
    for number, period_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_PERIOD_S)):
        deadline = time.monotonic() + period_s
        told: set[int] = set()
        while True:
            _reap(ended)
            alive = living()
            left = len(alive)
            if not alive:
                return 0
            if time.monotonic() > deadline:
                break
            for process in alive:
                if process.pid not in told and not process.zombie:
                    told.add(process.pid)
                    _signal(process.pid, number)
            time.sleep(_POLL_S)
    return left


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:  # it has just ended
        return


def _reap(ended: dict[int, _Ended]) -> None:
    """Takes note of every child of ours that has ended, orphans we adopted among them."""
    while True:
        try:
            pid, wait_status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        ended[pid] = _Ended(wait_status, usage.ru_utime + usage.ru_stime)


def _wake_up_when_a_child_ends() -> int:
    """A descriptor that becomes readable with every SIGCHLD."""
    wake_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write_fd)
    return wake_fd


def _let_go_of_the_log() -> None:
    """Closes our copies of the log's pipe: it shall end when the command's own do."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


def _prepare() -> None:
    """In the new process: it dies with the warden, and its memory is laid out the same each time, as far as may be.

    A system may forbid to switch off the randomisation of addresses (Docker's default seccomp profile does). Engines
    are the same nevertheless (engine.steady_memory), but for a stack without a limit, which turns the layout round.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    if most == resource.RLIM_INFINITY or most >= STACK_BYTES:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, most))


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


if __name__ == "__main__":
    # -I leaves the path to the standard library; add the checkout for `engine.processes`.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(main(sys.argv[1:]))
