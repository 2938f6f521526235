"""Brings an environment to the state that its locks describe, doing only what is missing."""

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Iterable, Iterator

from environments import install
from environments.exclusive import only_one
from environments.host import check_space, check_system
from environments.locks import Lock, Wanted, parse_name, size_text
from environments.pythons import choose, named
from environments.stamp import State, judge, read_stamp, with_present_extras
from environments.trouble import Trouble


def say(line: str) -> None:
    """A line of progress. On stderr: stdout is for what a script reads."""
    sys.stderr.write(f"rknn-tts: {line}\n")
    sys.stderr.flush()


def ensure(root: Path, name: str) -> Path:
    """The python of the environment of that name, which is set up first when it is not what the locks say."""
    root = Path(os.path.realpath(str(root)))
    wanted = parse_name(root, name)
    if _state(wanted).kind != "ready":
        with _alone(wanted) as descriptor:
            _bring_up(root, wanted, descriptor)
    return wanted.python


def add_extras(root: Path, name: str) -> None:
    """Adds the extras that the environment of that name lacks, and does nothing else to it.

    For a process that runs in that environment, which must not be made afresh under its feet.

    Raises:
        Trouble: they cannot be added, or the environment is not what its locks say.
    """
    root = Path(os.path.realpath(str(root)))
    wanted = parse_name(root, name)
    if judge(wanted).kind == "ready":
        return
    with _alone(wanted) as descriptor:
        # Once more: the process that was waited for may have done the work.
        state = judge(wanted)
        if state.kind == "lacking":
            _add(root, wanted, state, descriptor)
        elif state.kind != "ready":
            raise Trouble(
                f"{wanted.folder} must be made again ({state.reason or state.kind}), which cannot be done while it is "
                f"in use: run `environments/run {name}` and then this again"
            )


@contextlib.contextmanager
def _alone(wanted: Wanted) -> Iterator[int]:
    """Lets only this process change the environment; makes a sentence of what the system refuses meanwhile."""
    check_system()
    try:
        wanted.folder.parent.mkdir(parents=True, exist_ok=True)  # there, but where RKNN_TTS_ENVIRONMENTS names it
        with only_one(wanted.folder.with_name(wanted.folder.name + ".lock"), say) as descriptor:
            yield descriptor
    except OSError as error:
        raise Trouble(
            "setting up {} failed: {}: {}. Remedy that and run this again".format(
                wanted.folder, error.filename or "", error.strerror
            )
        ) from error


def _state(wanted: Wanted) -> State:
    state = judge(wanted)
    if state.kind in ("ready", "lacking"):
        stamp, asked = read_stamp(wanted.folder), named(os.environ)
        if stamp and asked and asked.executable != stamp.python:
            return State("stale", f"PYTHON asks for {asked.executable}")
    return state


def _bring_up(root: Path, wanted: Wanted, descriptor: int) -> None:
    # Once more, now that nobody else changes it: the process that was waited for may have done the work.
    state = _state(wanted)
    if state.kind == "ready":
        return
    if state.kind == "foreign":
        raise Trouble(
            f"{wanted.folder} exists and {state.reason}, so it is left as it is: move it away (or remove it) and run "
            "this again"
        )
    if state.kind == "lacking":
        _add(root, wanted, state, descriptor)
    else:
        _make(root, with_present_extras(wanted, root), state, descriptor)


def _add(root: Path, wanted: Wanted, state: State, descriptor: int) -> None:
    started = time.monotonic()
    folder, added = _called(root, wanted), install.missing(wanted)
    check_space(wanted.folder, _megabytes(added))
    say(f"adding to {folder}: {state.reason} ({size_text(added)}, once)...")
    install.add(root, wanted, descriptor)
    _say_ready(folder, started)


def _make(root: Path, wanted: Wanted, state: State, descriptor: int) -> None:
    started = time.monotonic()
    folder = _called(root, wanted)
    python = choose(os.environ, wanted.oldest_python)
    install.start_afresh(wanted.folder)
    check_space(wanted.folder, _megabytes(wanted.locks))
    why = f"again, because {state.reason}" if state.reason else f"{size_text(wanted.locks)}, once"
    say(f"setting up {folder} with Python {python.version} ({why})...")
    install.make(root, wanted, python.executable, descriptor)
    _say_ready(folder, started)


def _called(root: Path, wanted: Wanted) -> str:
    return wanted.folder.name if wanted.folder.parent == root else str(wanted.folder)


def _say_ready(folder: str, started: float) -> None:
    say(f"{folder} is ready ({time.monotonic() - started:.0f} s)")


def _megabytes(locks: Iterable[Lock]) -> int:
    return sum(lock.megabytes for lock in locks)
