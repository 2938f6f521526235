"""Putting finished files in their places: each whole or not at all, the engine first, its manifest last.

A reader that finds a manifest whose digest disagrees with its engine looked in between, or at a stale pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import write_whole


def publish(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write `files` in order; one that already has its content is left alone.

    Raises:
        UserInput: a file cannot be written; the message names it. Those not yet written stay as they were.
    """
    for path, data in files:
        try:
            if not _has_content(path, data):
                write_whole(path, data)
        except OSError as error:
            raise UserInput(
                f"{path}: cannot be written ({error.strerror or error}); --output names another place."
            ) from error


def _has_content(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
