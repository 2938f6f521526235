"""Finished steps, found again by the digest of everything that went into them.

    FOLDER/2f/2f81...c0/                 one finished step: its files, and
    FOLDER/2f/2f81...c0/.contents.json   the size and digest of each
    FOLDER/2f/2f81...c0.claim            while a process makes it (engine.step_claims)

An entry is as old as its `.contents.json`, which `find` touches. Entries appear whole and go whole, so any number of
processes may share a cache, on one node or several (docs/cache.md); the least recently used go when it holds more than
its limit, but none that was used within the last hour: another process may be reading it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from contracts.errors import UserInput
from engine import step_claims
from engine.cache_entries import CONTENTS, drop_damaged, entries_in, is_listed, is_whole, write_entry
from engine.folders import GONE, PARTIAL, clock_s, remove_any, remove_folder

CACHE_FOLDER = "RKNN_TTS_CACHE"
"""Environment variable: the cache's folder."""

CACHE_LIMIT = "RKNN_TTS_CACHE_LIMIT_GB"
"""Environment variable: how much finished steps may take, in 10^9 bytes."""

DEFAULT_LIMIT_BYTES = 12 * 10**9
"""A ladder of four rungs of CosyVoice3's flow (four exports of 1.33 GB and engines of 0.70, family-facts: 8.1 GB),
which goes on where it was interrupted, and 4 GB: some seventy conversions of Piper (an export of 34 MB, an engine of
20, measured), thirty of Kokoro's generator (79 and 51) or five of Qwen3's decoder (456 and 278): a day of trying
things."""

STALE_S = 24 * 3600
"""From this age on, a folder that was never finished is a dead process's."""

IN_USE_S = 3600.0
"""So long after its last use an entry may still be read: by default, no step takes longer (engine.request)."""

SWEEPS_A_LIMIT = 64
"""While a cache takes in as much as its limit, it is looked through so often. So a store costs the reading of some 64
entries however many there are (a farm has tens of thousands), and the limit is exceeded by 1/64 on average,
by a tenth once in 600 sweeps (exp(-6.4))."""

_BYTES_PER_GB = 10**9


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


def limit_bytes(environ: Mapping[str, str]) -> int:
    """How much finished steps may take: RKNN_TTS_CACHE_LIMIT_GB, else DEFAULT_LIMIT_BYTES.

    Raises:
        UserInput: it is no number above 0.
    """
    asked = environ.get(CACHE_LIMIT)
    if not asked:
        return DEFAULT_LIMIT_BYTES
    try:
        size_gb = float(asked)
    except ValueError:
        size_gb = math.nan
    if not 0 < size_gb < math.inf:
        raise UserInput(
            f"{CACHE_LIMIT} is {asked!r}, which is no number of gigabytes above 0; correct it, or unset it for "
            f"{DEFAULT_LIMIT_BYTES // _BYTES_PER_GB}."
        )
    return round(size_gb * _BYTES_PER_GB)


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
    """Finished steps in a folder, about `limit_bytes` of them (SWEEPS_A_LIMIT) and those that are in use.

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
            if not is_listed(entry):
                return None
            if not is_whole(entry):
                drop_damaged(entry)
                return None
        except OSError as error:
            if error.errno not in GONE:  # else there is none, or another process removes it
                self._give_up(error)
            return None
        with suppress(OSError):  # a cache that may only be read is of use too
            os.utime(entry / CONTENTS)
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
        entry = self._entry(key)
        try:
            size_bytes = write_entry(entry, folder, given_up)
        except OSError as error:
            self._give_up(error)
            return folder
        self._in_use.add(entry)
        if _is_due(key, size_bytes, self._limit_bytes):
            with suppress(OSError):  # it is kept, and the next one's turn comes
                self._evict()
        return entry

    @contextmanager
    def claimed(self, key: str, name: str) -> Iterator[None]:
        """Runs the body, which finds or makes the step `key`, while no other process makes it.

        Waits for one that does, and says so of the step `name`. A cache that cannot be written makes nobody wait.
        """
        entry = self._entry(key)

        def waiting(claim: step_claims.Claim) -> None:
            by = claim.holder
            self._say(
                f"Waiting for the step {name}, which "
                + (f"process {by.pid} on {by.host}" if by else "another process")
                + " makes."
            )

        with step_claims.claimed(entry.with_name(entry.name + step_claims.CLAIM), lambda: is_listed(entry), waiting):
            yield

    def usage(self) -> Usage:
        """How much there is."""
        entries = list(entries_in(self._folder))
        return Usage(len(entries), sum(entry.size_bytes for entry in entries), self._folder)

    def clean(self) -> Usage:
        """Removes everything; returns what there was. Only what this class has made: the folder may hold more."""
        before = self.usage()
        for entry in entries_in(self._folder):
            with suppress(OSError):
                remove_folder(entry.path)
        with suppress(OSError):
            self._remove_partial(clock_s(self._folder), older_than_s=0.0)
        self._in_use.clear()
        return before

    def _entry(self, key: str) -> Path:
        return self._folder / key[:2] / key

    def _evict(self) -> None:
        """Drops the least recently used entries until the rest fits.

        Never one that this process has found or stored, nor one that any process has within the last hour.
        """
        now_s = clock_s(self._folder)
        self._remove_partial(now_s, STALE_S)
        entries = sorted(entries_in(self._folder))
        surplus = sum(entry.size_bytes for entry in entries) - self._limit_bytes
        for entry in entries:
            if surplus <= 0 or entry.used_s > now_s - IN_USE_S:  # those that follow were used later still
                return
            if entry.path not in self._in_use:
                with suppress(OSError):
                    remove_folder(entry.path)
                surplus -= entry.size_bytes

    def _remove_partial(self, now_s: float, older_than_s: float) -> None:
        """Removes what dead processes left unfinished, and their claims."""
        for partial in self._folder.glob(f"??/{PARTIAL}*"):
            with suppress(OSError):  # gone in between
                if now_s - partial.stat().st_mtime >= older_than_s:
                    remove_any(partial)
        for ending in (step_claims.CLAIM, step_claims.CLAIM + step_claims.GUARD):
            for path in self._folder.glob(f"??/*{ending}"):
                with suppress(OSError):
                    claim = step_claims.look(path)
                    if claim is not None and step_claims.is_abandoned(claim, now_s):
                        path.unlink()

    def _give_up(self, error: OSError) -> None:
        if not self._said:
            self._said = True
            self._say(
                f"The cache {self._folder} cannot be used ({error.strerror or error}), so finished steps are not kept; "
                f"{CACHE_FOLDER} names another folder."
            )


def _is_due(key: str, size_bytes: int, limit_bytes: int) -> bool:
    """Whether the store of the step `key`, of `size_bytes`, is one after which the cache is looked through.

    Keys are as good as random: on average one store is for every 1/SWEEPS_A_LIMIT of the limit that is stored, by
    whatever processes, and nobody has to keep count.
    """
    return int(key[-8:], 16) / 16**8 < size_bytes * SWEEPS_A_LIMIT / limit_bytes
