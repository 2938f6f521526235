"""Brings an environment to the state that its locks describe, doing only what is missing."""

import os
import sys
import time
from pathlib import Path

from environments import install
from environments.exclusive import only_one
from environments.host import check_space, check_system
from environments.locks import Wanted, parse_name
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
        check_system()
        try:
            with only_one(root / (wanted.folder.name + ".lock"), say) as descriptor:
                _bring_up(root, wanted, descriptor)
        except OSError as error:
            raise Trouble(
                "setting up {} failed: {}: {}. Remedy that and run this again".format(
                    wanted.folder, error.filename or "", error.strerror
                )
            ) from error
    return wanted.python


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
    started = time.monotonic()
    folder = wanted.folder.name
    if state.kind == "lacking":
        check_space(wanted.folder, sum(lock.megabytes for lock in wanted.locks[1:]))
        say(f"adding to {folder}: {state.reason}...")
        install.add(root, wanted, descriptor)
    else:
        wanted = with_present_extras(wanted, root)
        python = choose(os.environ)
        install.start_afresh(wanted.folder)
        check_space(wanted.folder, _megabytes(wanted))
        why = f"again, because {state.reason}" if state.reason else f"about {_megabytes(wanted)} MB, once"
        say(f"setting up {folder} with Python {python.version} ({why})...")
        install.make(root, wanted, python.executable, descriptor)
    say(f"{folder} is ready ({time.monotonic() - started:.0f} s)")


def _megabytes(wanted: Wanted) -> int:
    return sum(lock.megabytes for lock in wanted.locks)
