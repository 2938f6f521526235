"""Folders that appear whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial-"
"""Starts the name of a folder that is still being written."""


_AT_FDCWD = -100  # fcntl.h
_RENAME_EXCHANGE = 2  # linux/fs.h


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder beside `final` to write to; at the end it is synced and becomes `final`, in place of an earlier one.

    Nothing of it is left when the body raises, and `final` is as it was.

    Raises:
        OSError: it cannot be written, or the disk is full.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{final.name[:40]}-", dir=final.parent))
    try:
        yield partial
        sync_tree(partial)
        partial.chmod(0o755)  # mkdtemp makes it private
        _put_in_place(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # the earlier one, where there was one


def _put_in_place(partial: Path, final: Path) -> None:
    """Renames `partial` to `final`; an earlier `final` changes places with it, so that there is always one."""
    while True:
        try:
            partial.rename(final)  # works where there is none, or an empty one
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        with suppress(FileNotFoundError):  # another process has just removed it: rename again
            _exchange(partial, final)
            return


def _exchange(one: Path, other: Path) -> None:
    """Each gets the other's name, at once (renameat2(2)).

    Raises:
        OSError: the file system cannot (some network ones), or one is missing.
    """
    failed = ctypes.CDLL(None, use_errno=True).renameat2(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
    )
    number = ctypes.get_errno()
    if failed and number in (errno.EINVAL, errno.ENOSYS):
        shutil.rmtree(other)  # second best: there is none for a moment
        one.rename(other)
    elif failed:
        raise OSError(number, os.strerror(number), str(other))


def sync_tree(folder: Path) -> None:
    """Makes every file below `folder`, and the folders, survive a crash of the machine."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
