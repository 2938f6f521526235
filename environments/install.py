"""Makes an environment, or adds an extra to one: `venv`, then pip with one lock after the other."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import BinaryIO, Dict, Iterable, List, Mapping

from environments import failure
from environments.launcher import connect_project
from environments.locks import Lock, Wanted
from environments.stamp import UNFINISHED, Stamp, read_stamp, with_present_extras, write_stamp
from environments.trouble import Trouble

# Settings of pip that would install elsewhere, or other packages, than the lock says.
_NOT_FOR_US = (
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIREMENT", "PIP_CONSTRAINT", "PIP_EDITABLE",
    "PIP_DRY_RUN", "PIP_PYTHON", "PIP_LOG",
)  # fmt: skip


_CONSTRAINTS = "rknn-tts-constraints.txt"
_INSTALLING = b"Installing collected packages"


def make(root: Path, wanted: Wanted, python: str, descriptor: int) -> None:
    """Makes the environment in a folder that was started afresh; `python` is the interpreter that it is based on."""
    with _log(wanted).open("wb") as log:
        _run([python, "-I", "-m", "venv", str(wanted.folder)], log, descriptor)
        _write_constraints(wanted.folder, wanted.locks)
        for lock in wanted.locks:
            _install(wanted, lock, log, descriptor)
    if wanted.is_toolchain:
        connect_project(root, wanted.folder)
    write_stamp(wanted.folder, python, [(lock.name, lock.digest) for lock in wanted.locks])


def missing(wanted: Wanted) -> List[Lock]:
    """The locks that a finished environment does not have yet."""
    held = [name for name, _ in _stamp(wanted).locks]
    return [lock for lock in wanted.locks if lock.name not in held]


def add(root: Path, wanted: Wanted, descriptor: int) -> None:
    """Adds the extras that a finished environment does not have yet."""
    stamp, added = _stamp(wanted), missing(wanted)
    marker = wanted.folder / UNFINISHED
    marker.write_bytes(b"")
    log_path = _log(wanted)
    try:
        with log_path.open("wb") as log:
            _write_constraints(wanted.folder, with_present_extras(wanted, root).locks)
            for lock in added:
                _install(wanted, lock, log, descriptor)
    except (Trouble, KeyboardInterrupt):
        # pip downloads everything before it touches the environment: until then that stays what it was.
        if _INSTALLING not in log_path.read_bytes():
            marker.unlink()
        raise
    write_stamp(wanted.folder, stamp.python, list(stamp.locks) + [(lock.name, lock.digest) for lock in added])


def _stamp(wanted: Wanted) -> Stamp:
    stamp = read_stamp(wanted.folder)
    if stamp is None:
        raise Trouble(f"{wanted.folder} changed while it was being set up: run this again")
    return stamp


def start_afresh(folder: Path) -> None:
    """Makes the folder, or takes all out of it (it may be a link to a larger disk, which stays).

    The mark of an unfinished set-up is there before anything goes, so that an interruption leaves no folder that
    looks like somebody else's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / UNFINISHED
    marker.write_bytes(b"")
    for child in folder.iterdir():
        if child == marker:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(str(child))
        else:
            child.unlink()


def pip_environment(environ: Mapping[str, str]) -> Dict[str, str]:
    """The variables for pip: the user's own, but for those that would install something or somewhere else."""
    return {name: value for name, value in environ.items() if name not in _NOT_FOR_US}


def pip_command(wanted: Wanted, lock: Lock) -> List[str]:
    """Exactly what the lock says: nothing built from source, and of a hashed lock no dependencies of pip's choice.

    What a plain pin depends on is pip's choice, but for what the hashed locks pin.
    """
    command = [str(wanted.python), "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--no-user", "--progress-bar", "off", "--only-binary", ":all:"]
    if lock.hashed:
        command += ["--no-deps", "--require-hashes"]
    else:
        command += ["--constraint", str(wanted.folder / _CONSTRAINTS)]
    return [*command, "-r", str(lock.path)]


def _install(wanted: Wanted, lock: Lock, log: BinaryIO, descriptor: int) -> None:
    _run(pip_command(wanted, lock), log, descriptor)


def _write_constraints(folder: Path, locks: Iterable[Lock]) -> None:
    """Writes what the hashed locks pin, without the hashes: a single one makes pip ask for all."""
    pins = [pin for lock in locks if lock.hashed for pin in lock.pins]
    (folder / _CONSTRAINTS).write_bytes("".join(pin + "\n" for pin in pins).encode("utf-8"))


def _log(wanted: Wanted) -> Path:
    """Beside the environment: where nodes have one each, they have a log each."""
    folder = wanted.folder.parent / "build-logs"
    folder.mkdir(exist_ok=True)
    return folder / f"setup-{wanted.locks[0].name}.log"


def _run(command: List[str], log: BinaryIO, descriptor: int) -> None:
    log.write(os.fsencode("$ {}\n".format(" ".join(command))))
    log.flush()
    start = log.tell()
    status = subprocess.call(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=pip_environment(os.environ),
        pass_fds=(descriptor,),
    )
    if status != 0:
        output = Path(log.name).read_bytes()[start:].decode("utf-8", "replace")
        raise Trouble(failure.explain(output, status, Path(log.name)))
