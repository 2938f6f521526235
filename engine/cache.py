"""Finished steps, found again by the digest of everything that went into them.

    FOLDER/2f/2f81...c0/                 one finished step: its files, and
    FOLDER/2f/2f81...c0/.contents.json   the size and digest of each

An entry is as old as its `.contents.json`, which `find` touches. Entries appear whole or not at all, so any number of
processes may share a cache; the least recently used go when it holds more than its limit, but none that was used
within the last hour: another process may be reading it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from contracts.files import sha256_of
from engine.folders import PARTIAL, new_folder

CACHE_FOLDER = "RKNN_TTS_CACHE"
"""Environment variable: the cache's folder."""

DEFAULT_LIMIT_BYTES = 12 * 10**9
"""A ladder of four rungs of CosyVoice3's flow (four exports of 1.33 GB and engines of 0.70, family-facts: 8.1 GB),
which goes on where it was interrupted, and 4 GB: some seventy conversions of Piper (an export of 34 MB, an engine of
20, measured), thirty of Kokoro's generator (79 and 51) or five of Qwen3's decoder (456 and 278): a day of trying
things."""

STALE_S = 24 * 3600
"""From this age on, a folder that was never finished is a dead process's."""

IN_USE_S = 3600.0
"""So long after its last use an entry may still be read: by default, no step takes longer (engine.request)."""

_CONTENTS = ".contents.json"


@dataclass(frozen=True)
class Usage:
    """What a cache holds."""

    entries: int
    size_bytes: int
    folder: Path


def default_folder() -> Path:
    """`RKNN_TTS_CACHE`, else the platform's cache folder of the user."""
    chosen = os.environ.get(CACHE_FOLDER)
    return Path(chosen) if chosen else platformdirs.user_cache_path("rknn-tts")


def step_key(name: str, parts: Mapping[str, str]) -> str:
    """The key of the step `name` whose result depends on `parts` (digests and options by name): 64 hex digits."""
    text = json.dumps([name, sorted(parts.items())], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(folders: Sequence[Path]) -> str:
    """A digest of all `*.py` files below `folders`, so that edited code does not find its earlier results.

    Goes by each file's name below its folder and its bytes; the same checkout elsewhere has the same digest.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            data = path.read_bytes()
            digest.update(f"{folder.name}/{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()


class StepCache:
    """Finished steps in a folder, at most `limit_bytes` of them but for those that are in use.

    A folder that cannot be written means that nothing is kept: `say` gets one sentence about it, once, and no call
    fails because of it.
    """

    def __init__(
        self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES, say: Callable[[str], None] = print
    ) -> None:
        self._folder, self._limit_bytes, self._say = folder, limit_bytes, say
        self._in_use: set[Path] = set()
        self._said = False

    def find(self, key: str) -> Path | None:
        """The folder of the finished step `key`, with the contents it was stored with; None where there is none.

        This process does not evict it, others not within the hour; only `clean` removes it sooner. A damaged one is
        dropped.
        """
        entry = self._entry(key)
        try:
            if not _is_whole(entry):
                shutil.rmtree(entry, ignore_errors=True)
                return None
        except FileNotFoundError:  # there is none, or another process removes it
            return None
        except OSError as error:
            self._give_up(error)
            return None
        with suppress(OSError):  # a cache that may only be read is of use too
            os.utime(entry / _CONTENTS)
        self._in_use.add(entry)
        return entry

    def store(self, key: str, folder: Path, *, given_up: bool = False) -> Path:
        """Keep a copy of `folder`, the result of the step `key`; returns it, or `folder` where nothing is kept.

        Args:
            key: the step's key.
            folder: what it made.
            given_up: whether nobody writes to its files any more. They need no copy then where the file system gives
                them a second name.
        """
        entry, copy = self._entry(key), _link_or_copy if given_up else shutil.copy2
        try:
            with new_folder(entry) as partial:
                shutil.copytree(folder, partial, dirs_exist_ok=True, copy_function=copy)
                (partial / _CONTENTS).write_text(json.dumps(_contents_of(partial)), encoding="utf-8")
        except OSError as error:
            self._give_up(error)
            return folder
        self._in_use.add(entry)
        self._evict()
        return entry

    def usage(self) -> Usage:
        """How much there is."""
        entries = list(self._entries())
        return Usage(len(entries), sum(entry.size_bytes for entry in entries), self._folder)

    def clean(self) -> Usage:
        """Removes everything; returns what there was. Only what this class has made: the folder may hold more."""
        before = self.usage()
        for entry in self._entries():
            shutil.rmtree(entry.path, ignore_errors=True)
        self._remove_partial(older_than_s=0.0)
        self._in_use.clear()
        return before

    def _entry(self, key: str) -> Path:
        return self._folder / key[:2] / key

    def _entries(self) -> Iterator[_Entry]:
        for contents in self._folder.glob(f"??/*/{_CONTENTS}"):
            try:
                size_bytes = sum(item[0] for item in json.loads(contents.read_bytes()).values())
                yield _Entry(contents.stat().st_mtime, contents.parent, size_bytes)
            except (OSError, ValueError, TypeError, IndexError, AttributeError):  # gone in between, or damaged
                yield _Entry(0.0, contents.parent, 0)

    def _evict(self) -> None:
        """Drops the least recently used entries until the rest fits.

        Never one that this process has found or stored, nor one that any process has within the last hour.
        """
        self._remove_partial(STALE_S)
        entries = sorted(self._entries())
        in_use_since_s = time.time() - IN_USE_S
        surplus = sum(entry.size_bytes for entry in entries) - self._limit_bytes
        for entry in entries:
            if surplus <= 0 or entry.used_s > in_use_since_s:  # those that follow were used later still
                return
            if entry.path not in self._in_use:
                shutil.rmtree(entry.path, ignore_errors=True)
                surplus -= entry.size_bytes

    def _remove_partial(self, older_than_s: float) -> None:
        now_s = time.time()
        for partial in self._folder.glob(f"??/{PARTIAL}*"):
            try:
                if now_s - partial.stat().st_mtime >= older_than_s:
                    shutil.rmtree(partial, ignore_errors=True)
            except OSError:  # gone in between
                continue

    def _give_up(self, error: OSError) -> None:
        if not self._said:
            self._said = True
            self._say(
                f"The cache {self._folder} cannot be used ({error.strerror or error}), so finished steps are not kept; "
                f"{CACHE_FOLDER} names another folder."
            )


def _link_or_copy(source: str, path: str) -> None:
    try:
        os.link(source, path, follow_symlinks=True)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, path)


@dataclass(frozen=True, order=True)
class _Entry:
    used_s: float
    path: Path
    size_bytes: int


def _contents_of(folder: Path) -> dict[str, list[int | str]]:
    """Size and digest of every file below `folder`, by its relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _CONTENTS)
    return {path.relative_to(folder).as_posix(): [path.stat().st_size, sha256_of(path)] for path in files}


def _is_whole(entry: Path) -> bool:
    """Whether `entry` holds exactly what it was stored with; where it is replaced meanwhile, whether the new one does.

    Raises:
        FileNotFoundError: there is no such entry.
    """
    text = (entry / _CONTENTS).read_bytes()
    while True:
        with suppress(FileNotFoundError, ValueError):
            if json.loads(text) == _contents_of(entry):
                return True
        before, text = text, (entry / _CONTENTS).read_bytes()
        if text == before:
            return False
