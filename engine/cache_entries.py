"""Entries of the cache of finished steps: how one is written, whether it is whole, and what there are."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from contracts.files import sha256_of
from engine.folders import GONE, new_folder, remove_any, set_aside

CONTENTS = ".contents.json"
"""In each entry: size and digest of its files. Its time is that of the entry's last use."""


@dataclass(frozen=True, order=True)
class Entry:
    """A finished step: its last use in seconds since 1970, where it is, and its size."""

    used_s: float
    path: Path
    size_bytes: int


def contents_of(folder: Path) -> dict[str, list[int | str]]:
    """Size and digest of every file below `folder`, by its relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CONTENTS)
    return {path.relative_to(folder).as_posix(): [path.stat().st_size, sha256_of(path)] for path in files}


def is_listed(entry: Path) -> bool:
    """Whether there is a folder `entry`, by the list of its parent's names: never asked for by its own name.

    A node of a file server remembers that a name was missing, and goes on saying so once another node has made it; a
    folder that it opens it asks for anew (docs/cache.md).

    Raises:
        OSError: the parent cannot be read; not where it is missing.
    """
    try:
        return any(path.name == entry.name for path in entry.parent.iterdir())
    except OSError as error:
        if error.errno in GONE:
            return False
        raise


def is_whole(entry: Path) -> bool:
    """Whether `entry` holds exactly what it was stored with; where it is replaced meanwhile, whether the new one does.

    Raises:
        OSError: there is no such entry (GONE), or it cannot be read.
    """
    text = (entry / CONTENTS).read_bytes()
    while True:
        try:
            if json.loads(text) == contents_of(entry):
                return True
        except ValueError:
            pass
        except OSError as error:
            if error.errno not in GONE:
                raise
        before, text = text, (entry / CONTENTS).read_bytes()
        if text == before:
            return False


def write_entry(entry: Path, folder: Path, given_up: bool) -> int:
    """Keeps a copy of `folder` at `entry`; returns its size in bytes.

    Args:
        entry: its place; an earlier one there is replaced.
        folder: what to keep.
        given_up: whether nobody writes to its files any more: they get a second name then, where that can be had.

    Raises:
        OSError: it cannot be written.
    """
    with new_folder(entry) as partial:
        shutil.copytree(folder, partial, dirs_exist_ok=True, copy_function=_link_or_copy if given_up else shutil.copy2)
        contents = contents_of(partial)
        (partial / CONTENTS).write_text(json.dumps(contents), encoding="utf-8")
    return sum(int(item[0]) for item in contents.values())


def drop_damaged(entry: Path) -> None:
    """Removes `entry`, unless another process has put a whole one there since it was found damaged."""
    with suppress(OSError):
        aside = set_aside(entry)
        with suppress(OSError):
            if is_whole(aside):
                aside.rename(entry)
        remove_any(aside)


def entries_in(folder: Path) -> Iterator[Entry]:
    """All entries of the cache at `folder`; one that is damaged, or removed meanwhile, as old and empty."""
    for contents in folder.glob(f"??/*/{CONTENTS}"):
        try:
            size_bytes = sum(item[0] for item in json.loads(contents.read_bytes()).values())
            yield Entry(contents.stat().st_mtime, contents.parent, size_bytes)
        except (OSError, ValueError, TypeError, IndexError, AttributeError):
            yield Entry(0.0, contents.parent, 0)


def _link_or_copy(source: str, path: str) -> None:
    try:
        os.link(source, path, follow_symlinks=True)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, path)
