"""What an environment says about itself, and whether that is what is wanted now.

The stamp is a text file in the environment, written last: no stamp, no finished environment. The launcher at the
root compares its lines without starting Python, so their form is shared with it.
"""

import os
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from environments.locks import Wanted, read_lock
from environments.trouble import Trouble

STAMP = "rknn-tts-environment"
UNFINISHED = "rknn-tts-unfinished"
# Changes when environments are made differently, so that older ones are made again.
FORMAT = "format 2"


class Stamp(NamedTuple):
    """Where the environment was made, with which Python, from which locks (name and digest)."""

    folder: str
    python: str
    locks: Tuple[Tuple[str, str], ...]


class State(NamedTuple):
    """`ready`, `absent`, `unfinished`, `stale`, `lacking` (an extra is to be added) or `foreign` (not made by us)."""

    kind: str
    reason: str = ""


def write_stamp(folder: Path, python: str, locks: List[Tuple[str, str]]) -> None:
    """Declares the environment finished, whole or not at all."""
    lines = [FORMAT, "path " + str(folder), "python " + python]
    lines += [f"lock {name} {digest}" for name, digest in locks]
    temporary = folder / (STAMP + ".new")
    temporary.write_bytes(os.fsencode("\n".join(lines) + "\n"))
    temporary.replace(folder / STAMP)
    marker = folder / UNFINISHED
    if marker.exists():
        marker.unlink()


def read_stamp(folder: Path) -> Optional[Stamp]:
    """The stamp, or None where there is none of today's format."""
    try:
        lines = os.fsdecode((folder / STAMP).read_bytes()).split("\n")
    except OSError:
        return None
    fields: Dict[str, str] = {}
    locks = []
    for line in lines[1:]:
        key, _, value = line.partition(" ")
        if key == "lock":
            name, _, digest = value.partition(" ")
            locks.append((name, digest))
        else:
            fields[key] = value
    if lines[0] != FORMAT or not locks or "path" not in fields or "python" not in fields:
        return None
    return Stamp(fields["path"], fields["python"], tuple(locks))


def judge(wanted: Wanted) -> State:
    """What stands in the folder, against what is wanted."""
    folder = wanted.folder
    if not folder.is_dir() or not any(folder.iterdir()):
        return State("absent")
    if not (folder / STAMP).exists() and not (folder / UNFINISHED).exists():
        return State("foreign", "was not made by rknn-tts")
    stamp = read_stamp(folder)
    if stamp is None or (folder / UNFINISHED).exists():
        return State("unfinished", "its set-up did not finish")
    if stamp.folder != str(folder):
        if Path(stamp.folder).is_dir() and folder.samefile(stamp.folder):
            return State("foreign", f"is a link to {stamp.folder}, the environment of another checkout")
        return State("stale", f"it was made at {stamp.folder}")
    if not os.access(str(wanted.python), os.X_OK):
        return State("stale", f"its Python, {stamp.python}, is gone")
    held = dict(stamp.locks)
    for lock in wanted.locks:
        if held.get(lock.name, lock.digest) != lock.digest:
            return State("stale", f"requirements/{lock.path.name} changed")
    missing = [lock.name for lock in wanted.locks if lock.name not in held]
    if missing:
        return State("lacking", "it has no {} yet".format(" and ".join(missing)))
    return State("ready")


def with_present_extras(wanted: Wanted, root: Path) -> Wanted:
    """What is wanted and the extras that the folder already has, so that making it again loses none."""
    stamp = read_stamp(wanted.folder)
    names = [lock.name for lock in wanted.locks]
    kept = []
    for name, _ in stamp.locks if stamp else ():
        if name not in names:
            try:
                kept.append(read_lock(root, name))
            except Trouble:
                continue  # An extra that the project no longer has.
    return wanted._replace(locks=wanted.locks + tuple(kept))
