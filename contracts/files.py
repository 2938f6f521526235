"""Files that appear whole or not at all, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
class Pieces:
    """What a file will hold, put together where it is written: bytes, and what other files hold then.

    Those are not to change meanwhile: its size and digest are found out once.
    """

    parts: tuple[bytes | Path, ...]

    def chunks(self) -> Iterator[bytes]:
        """The bytes, piece by piece, in order.

        Raises:
            OSError: one of the files cannot be read.
        """
        for part in self.parts:
            if isinstance(part, bytes):
                yield part
                continue
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk

    @cached_property
    def size(self) -> int:
        """How many bytes there are."""
        return sum(len(part) if isinstance(part, bytes) else part.stat().st_size for part in self.parts)

    @cached_property
    def sha256(self) -> str:
        """Their SHA-256, as hex digits."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()


Content = bytes | Pieces
"""What a file will hold: as it is, or, where it is large, without being held in memory."""


def sha256_of_content(content: Content) -> str:
    """SHA-256 of `content`, as hex digits."""
    return content.sha256 if isinstance(content, Pieces) else sha256_of_bytes(content)


def holds(path: Path, content: Content) -> bool:
    """Whether the file `path` holds `content`.

    Raises:
        OSError: it cannot be read.
    """
    pieces = content if isinstance(content, Pieces) else Pieces((content,))
    if not path.is_file() or path.stat().st_size != pieces.size:
        return False
    with path.open("rb") as file:
        return all(file.read(len(chunk)) == chunk for chunk in pieces.chunks())


_KNOWN: ContextVar[Callable[[Path], str] | None] = ContextVar("known digests", default=None)


@contextmanager
def digests_from(known: Callable[[Path], str]) -> Iterator[None]:
    """Within, and in this thread alone, `sha256_of` asks `known`: of thousands of files, few have changed."""
    token = _KNOWN.set(known)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def sha256_of(path: Path) -> str:
    """SHA-256 of the file `path`, as hex digits, read in pieces."""
    known = _KNOWN.get()
    return read_sha256(path) if known is None else known(path)


def read_sha256(path: Path) -> str:
    """SHA-256 of the file `path` as it is now, whatever is known of it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """SHA-256 of `data`, as hex digits."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path: Path, data: Content) -> None:
    """Write `data` to `path` so that it appears whole or not at all, and survives a crash once this returns.

    A temporary file in the same folder is written, synced and renamed over `path`; an earlier file stays as it was
    if anything fails.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    write_all_whole([(path, data)])


def write_all_whole(files: Sequence[tuple[Path, Content]]) -> None:
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
    write_whole(path, Pieces((source,)))


def _temporary(path: Path, data: Content) -> Path:
    """A synced file beside `path` that holds `data`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder stands there")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_SHOWN_CHARACTERS]}.", suffix=".partial")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in data.chunks() if isinstance(data, Pieces) else (data,):
                file.write(chunk)
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
