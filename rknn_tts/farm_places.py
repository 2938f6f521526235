"""Where a farm works: its output folder, which one farm has at a time, and the profile that says on which machines."""

from __future__ import annotations

import fcntl
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import UserInput
from farm.places import FarmPlaces
from rknn_tts.places import make_folder
from rknn_tts.steps import ROOT

PROFILES = ROOT / "farm" / "profiles"
"""Those that come with rknn-tts, which `--profile` names without their folder."""

OWN_PROFILES = frozenset({"common", "local"})
"""Of these, what the farm gives Snakemake itself."""

CONFIGS = ("config.yaml", "config.v9+.yaml", "config.v8+.yaml")
"""What Snakemake 9 takes as a profile's file."""

LOCAL = "local"
"""The executor of this machine."""

_EXECUTOR = re.compile(r"""^executor:[ \t]*["']?([\w-]+)""", re.MULTILINE)

_OTHER_OUTPUT = "--output names another folder"


@dataclass(frozen=True)
class Profile:
    """A profile of Snakemake.

    Attributes:
        folder: its folder.
        elsewhere: whether its jobs run on other machines than this one.
    """

    folder: Path
    elsewhere: bool


def profile_at(text: str) -> Profile:
    """The profile that `--profile` names: a folder, or one of ours.

    Raises:
        UserInput: there is none.
    """
    folder = Path(text)
    if not folder.exists() and (PROFILES / text).is_dir():
        folder = PROFILES / text
    ours = sorted(path.name for path in PROFILES.iterdir() if path.is_dir() and path.name not in OWN_PROFILES)
    own = f"; of our own there are {' and '.join(ours)}" if ours else ""
    if not folder.is_dir():
        what = "is a file; name the folder it stands in" if folder.exists() else "there is no such folder"
        raise UserInput(f"--profile {text}: {what}, with a config.yaml of Snakemake's options{own}.")
    config = next((folder / name for name in CONFIGS if (folder / name).is_file()), None)
    if config is None:
        raise UserInput(f"--profile {text}: holds no config.yaml of Snakemake's options{own}.")
    try:
        executor = _EXECUTOR.search(config.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise UserInput(f"{config}: cannot be read ({error.strerror}).") from error
    return Profile(folder.absolute(), executor is not None and executor[1] != LOCAL)


def check_output(output: Path) -> None:
    """See that the farm's folder is none of another thing.

    Raises:
        UserInput: it is a file, or below one.
    """
    around = next((path for path in (output, *output.parents) if path.exists() and not path.is_dir()), None)
    if around is not None:
        raise UserInput(f"{around}: is a file, and the engines go into a folder; {_OTHER_OUTPUT}.")


@contextmanager
def only_farm(places: FarmPlaces) -> Iterator[None]:
    """Makes the farm's folders and has them alone until the end.

    Raises:
        UserInput: they cannot be made or written, or another farm is at work there.
    """
    make_folder(places.output, _OTHER_OUTPUT)
    make_folder(places.own, _OTHER_OUTPUT)
    try:
        # To be written, as locks of a network's disk want it; it is not inherited by what is started.
        descriptor = os.open(places.lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserInput(f"{places.lock}: cannot be written ({error.strerror}); {_OTHER_OUTPUT}.") from error
    try:
        _acquire(descriptor, places)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, places: FarmPlaces) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 300, 0).decode("utf-8", "replace") or "a process"
        raise UserInput(
            f"{places.output}: another farm is at work there ({holder}); wait for it, or {_OTHER_OUTPUT}."
        ) from error
    except OSError as error:
        raise UserInput(f"{places.lock}: cannot be locked ({error.strerror}); {_OTHER_OUTPUT}.") from error
