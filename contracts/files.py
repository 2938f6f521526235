"""Files that appear whole or not at all, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_CHUNK_BYTES = 1 << 20

_SHOWN_CHARACTERS = 40
"""Of a file's name, in that of its temporary file: with four bytes each they fit the 255 of a name."""


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


_UMASK = _umask()
"""Read once, before there are threads: only setting it reads it, for the whole process."""


def sha256_of(path: Path) -> str:
    """SHA-256 of the file `path`, as hex digits, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """SHA-256 of `data`, as hex digits."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that it appears whole or not at all, and survives a crash once this returns.

    A temporary file in the same folder is written, synced and renamed over `path`; an earlier file stays as it was
    if anything fails.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    write_all_whole([(path, data)])


def write_all_whole(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write every file as `write_whole` would, none before all of them are on the disk; they appear in order.

    Raises:
        OSError: one cannot be written; its `filename` is that path, and every path is as it was.
    """
    temporaries: dict[Path, Path] = {}
    earlier: dict[Path, Path] = {}
    replaced: list[Path] = []
    try:
        for path, data in files:
            with _named(path):
                temporaries[path] = _temporary(path, data)
                if path.exists():
                    earlier[path] = _kept(path, temporaries[path])
        for path, temporary in temporaries.items():
            with _named(path):
                temporary.replace(path)
            replaced.append(path)
    except BaseException:
        for path in replaced:
            if path in earlier:
                earlier[path].replace(path)
            else:
                path.unlink(missing_ok=True)
        raise
    finally:
        for left in (*temporaries.values(), *earlier.values()):
            left.unlink(missing_ok=True)
    for folder in dict.fromkeys(path.parent for path in temporaries):
        _sync_folder(folder)


def copy_whole(source: Path, path: Path) -> None:
    """Copy `source` to `path` as `write_whole` would write it."""
    write_whole(path, source.read_bytes())


def _temporary(path: Path, data: bytes) -> Path:
    """A synced file beside `path` that holds `data`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder stands there")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_SHOWN_CHARACTERS]}.", suffix=".partial")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_UMASK)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _kept(path: Path, temporary: Path) -> Path:
    """A second name of the file `path`, or a copy where the file system has no links."""
    kept = temporary.with_suffix(".earlier")
    try:
        os.link(path, kept)
    except OSError:
        try:
            shutil.copy2(path, kept)
        except BaseException:
            kept.unlink(missing_ok=True)
            raise
    return kept


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An OSError from inside names `path`, not the temporary file."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
