"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial-"
"""Starts the name of a folder that is still being written."""


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
        if final.exists():
            # A folder cannot be renamed over another. Moved aside first: two writers must not meet half of one.
            aside = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=final.parent))
            with suppress(FileNotFoundError):  # the other writer was faster
                final.rename(aside / "old")
            partial.rename(final)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Makes every file below `folder`, and the folders, survive a crash of the machine."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
