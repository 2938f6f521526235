"""Folders that appear whole or not at all, and go so, on a machine's own disk or on a file server's (docs/cache.md)."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial-"
"""Starts the name of what is still being written, or being removed."""

GONE = frozenset({errno.ENOENT, errno.ESTALE})
"""What the system says of a file that is not there; the second, of one that was while another node removed it (NFS)."""

_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_CANNOT_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS})
_AT_FDCWD = -100  # fcntl.h
_RENAME_EXCHANGE = 2  # linux/fs.h
_NAME_LENGTH = 40
"""Of a folder's name, so much is seen in that of its partial one: 255 is the longest name there can be."""


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder beside `final` to write to; at the end it is synced and becomes `final`, in place of an earlier one.

    Nothing of it is left when the body raises, and `final` is as it was.

    Raises:
        OSError: it cannot be written, or the disk is full.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{final.name[:_NAME_LENGTH]}-", dir=final.parent))
    try:
        yield partial
        sync_tree(partial)
        partial.chmod(0o755)  # mkdtemp makes it private
        _put_in_place(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # the earlier one, where there was one


def _put_in_place(partial: Path, final: Path) -> None:
    """Renames `partial` to `final`; an earlier `final` changes places with it, so that there is always one.

    Where the file system cannot exchange two names (NFS), there is none for the moment between two renames.
    """
    while True:
        try:
            partial.rename(final)  # works where there is none, or an empty one
            return
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
        with suppress(FileNotFoundError):  # another process has just removed it: rename again
            if _exchange(partial, final):
                return
            remove_folder(final)


def _exchange(one: Path, other: Path) -> bool:
    """Each gets the other's name, at once (renameat2(2)); whether the file system can.

    Raises:
        OSError: one is missing, or may not be renamed.
    """
    failed = ctypes.CDLL(None, use_errno=True).renameat2(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
    )
    number = ctypes.get_errno()
    if failed and number not in _CANNOT_EXCHANGE:
        raise OSError(number, os.strerror(number), str(other))
    return not failed


def set_aside(path: Path) -> Path:
    """Gives `path` a name of its own beside it, and returns that: of several processes that try, one succeeds.

    Raises:
        FileNotFoundError: there is none (any more).
        OSError: it may not be renamed.
    """
    aside = path.with_name(f"{PARTIAL}{path.name[:_NAME_LENGTH]}-{secrets.token_hex(8)}")
    path.rename(aside)
    return aside


def remove_folder(folder: Path) -> None:
    """Removes `folder`, where it can be: its name first, so that nobody finds half of it.

    On NFS, a file in it that is open on this node stays as `.nfs...` until it is closed, and the folder under its new
    name with it: what removes partial folders takes that.

    Raises:
        OSError: it may not be renamed; not where it is gone already.
    """
    with suppress(FileNotFoundError):
        shutil.rmtree(set_aside(folder), ignore_errors=True)


def remove_any(path: Path) -> None:
    """Removes a file or a folder that nobody else looks for, as far as it can be; what is left is tried again later."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def clock_s(folder: Path) -> float:
    """What time it is where `folder` is kept, in seconds since 1970: times of its files compare with no other clock.

    A node's own may differ from the file server's. Asking leaves nothing.

    Raises:
        OSError: nothing can be written there.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"{PARTIAL}clock-", dir=folder)
    try:
        os.utime(descriptor)  # without times: those of the server
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        Path(name).unlink()


def sync_tree(folder: Path) -> None:
    """Makes every file below `folder`, and the folders, survive a crash of the machine.

    Raises:
        OSError: one cannot be written; so says a network disk of what it had taken before.
    """
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL or not path.is_dir():  # some file systems cannot sync a folder
                raise
        finally:
            os.close(descriptor)
