"""Who is making a step: others that need it, on whatever node, wait for it instead of making it a second time.

    FOLDER/2f/2f81...c0.claim        a file: host, process and a token of who makes the step 2f81...c0
    FOLDER/2f/2f81...c0.claim-over   there for a moment, while the claim of a dead process is taken over

A claim appears with all it holds, by link(2), which one of many processes succeeds in, on NFS too. Its holder sets its
time every HEARTBEAT_S, and removes it at the end. Once the holder is dead another takes it over: at once on the node
that can see that, and elsewhere STALE_CLAIM_S after the last sign of life, by the file server's clock.

Claims save work and protect nothing. One that is lost, or cannot be made, means that a step is made twice, each whole:
entries appear by a rename, whoever makes them. A holder that is alive and silent can cause nothing worse.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.folders import GONE, PARTIAL, clock_s

CLAIM = ".claim"
"""Ends the name of a claim."""

GUARD = "-over"
"""Stands behind the name of a claim while it is taken over."""

HEARTBEAT_S = 10.0
"""How often a holder says that it is alive: five signs may be lost before anybody believes it dead."""

STALE_CLAIM_S = 120.0
"""Silent so long, a holder is dead: twice the 60 s for which a node may show old times of a file (nfs(5), acregmax)."""

LONGEST_WAIT_S = 2 * 3600.0
"""Twice what a step may take by default (engine.request): a holder that lives on and ends never keeps nobody longer."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""Between two looks, the first and, doubling, the longest: a small engine takes 2 s, a small graph milliseconds."""

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})
"""What file systems without hard links say of one (link(2))."""

_STATE, _STARTED = 0, 19
"""Of /proc/PID/stat behind the command's name: the third field and the 22nd (proc_pid_stat(5))."""


@dataclass(frozen=True)
class Holder:
    """A process that makes a step.

    Attributes:
        host: its node's name, for people.
        machine: the boot of its kernel and the namespace of its process number: only there does `pid` mean anything.
        pid: its number.
        started: when it was started, in ticks since the boot: numbers are used again.
        token: of this one claim.
    """

    host: str
    machine: str
    pid: int
    started: str
    token: str


@dataclass(frozen=True)
class Claim:
    """A claim as it was found: its holder (None where the file does not say) and its last sign of life."""

    holder: Holder | None
    alive_s: float


@contextmanager
def claimed(path: Path, is_made: Callable[[], bool], say: Callable[[Claim], None]) -> Iterator[None]:
    """Runs the body with the claim `path`, as soon as there is no other or `is_made()`: then without it.

    Also without one where none can be made, as in a folder that cannot be written. `say` gets the claim that is waited
    for, once.
    """
    holder, ended = _this_process(), threading.Event()
    release = _releaser(path, holder, ended)
    try:
        held = _wait(path, holder, is_made, say)
    except OSError:
        release()
        held = False
    if not held:
        yield
        return
    threading.Thread(target=_live, args=(path, holder, ended), daemon=True, name="claim").start()
    atexit.register(release)  # a thread that ends with the process runs nothing of what follows
    try:
        yield
    finally:
        atexit.unregister(release)
        release()


def look(path: Path) -> Claim | None:
    """The claim at `path` as the file server has it; None where there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:  # opened, since a mere stat may show what the node remembers (NFS)
            return Claim(_holder(file.read()), os.fstat(file.fileno()).st_mtime)
    except OSError as error:
        if error.errno in GONE:
            return None
        raise


def is_abandoned(claim: Claim, now_s: float) -> bool:
    """Whether its holder is dead, as far as can be told; `now_s` is the time where the claim is kept."""
    return now_s - claim.alive_s > STALE_CLAIM_S or (claim.holder is not None and _is_dead(claim.holder))


def _wait(path: Path, holder: Holder, is_made: Callable[[], bool], say: Callable[[Claim], None]) -> bool:
    """Whether the claim is `holder`'s now; not so where there is nothing to make any more, or it took too long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told, pause_s, until_s = False, _FIRST_PAUSE_S, time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < until_s:
        if _take(path, holder):
            return True
        if is_made():
            return False
        other = look(path)
        if other is not None and is_abandoned(other, clock_s(path.parent)):
            if _take_over(path, holder):
                return True
        elif other is not None and not told:
            told = True
            say(other)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return False


def _take(path: Path, holder: Holder) -> bool:
    with _written(path, holder) as whole:
        try:
            os.link(whole, path)
            return True
        except OSError as error:
            if error.errno in _NO_LINKS:
                return _create(path, holder)
            if error.errno != errno.EEXIST:
                raise
        # It may be ours: an answer that a network lost is asked for again, and the link is there by then.
        return _is_held(path, holder)


def _create(path: Path, holder: Holder) -> bool:
    """As `_take`, where there are no links: for a moment the claim is there and empty, which says that it is new."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(_text(holder))
    return True


def _take_over(path: Path, holder: Holder) -> bool:
    """Puts the claim of `holder` in the place of an abandoned one, where nobody else has meanwhile.

    Of several that try, the one that makes the guard looks again: what another has put there is not abandoned.
    """
    guard = path.with_name(path.name + GUARD)
    if not _take(guard, holder):
        left = look(guard)
        if left is not None and is_abandoned(left, clock_s(path.parent)):  # killed just here
            guard.unlink(missing_ok=True)
        return False
    try:
        found = look(path)
        if found is None or not is_abandoned(found, clock_s(path.parent)):
            return False
        with _written(path, holder) as whole, suppress(FileNotFoundError):  # as in `_take`, it may be done already
            whole.replace(path)
        return _is_held(path, holder)
    finally:
        guard.unlink(missing_ok=True)


@contextmanager
def _written(path: Path, holder: Holder) -> Iterator[Path]:
    """A file beside `path` that holds what a claim of `holder` does; gone at the end, where it has that name still."""
    descriptor, name = tempfile.mkstemp(prefix=f"{PARTIAL}claim-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_text(holder))
            os.fchmod(file.fileno(), 0o644)  # mkstemp makes it private, and others look at it
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _releaser(path: Path, holder: Holder, ended: threading.Event) -> Callable[[], None]:
    def release() -> None:
        ended.set()
        with suppress(OSError):
            if _is_held(path, holder):
                path.unlink(missing_ok=True)

    return release


def _live(path: Path, holder: Holder, ended: threading.Event) -> None:
    """Says every HEARTBEAT_S that the claim's holder is alive, until it ends or is no longer the holder."""
    while not ended.wait(HEARTBEAT_S):
        with suppress(OSError):
            if not _is_held(path, holder):
                return
            os.utime(path)  # without times: those of the server


def _is_held(path: Path, holder: Holder) -> bool:
    claim = look(path)
    return claim is not None and claim.holder == holder


def _this_process() -> Holder:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        machine = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # no Linux: whether it lives is told by its signs alone
        machine = ""
    pid = os.getpid()
    return Holder(socket.gethostname(), machine, pid, (_process(pid) or ("", ""))[1], secrets.token_hex(8))


def _is_dead(holder: Holder) -> bool:
    """Whether this node can see that `holder` is no more."""
    here = _this_process()
    if not here.machine or here.machine != holder.machine:
        return False
    process = _process(holder.pid)
    return process is None or process[0] in "ZX" or process[1] != holder.started


def _process(pid: int) -> tuple[str, str] | None:
    """State and start (ticks since the boot) of a process of this machine; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[_STATE], fields[_STARTED]
    except (OSError, IndexError):
        return None


def _text(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _holder(text: bytes) -> Holder | None:
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return None
