"""Files that appear whole or not at all, and their digests."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """SHA-256 of the file `path`, as hex digits, read in pieces of 1 MB."""
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
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.", suffix=".partial")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def copy_whole(source: Path, path: Path) -> None:
    """Copy `source` to `path` as `write_whole` would write it."""
    write_whole(path, source.read_bytes())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
