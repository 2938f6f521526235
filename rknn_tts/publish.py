"""Putting finished files in their places: each whole or not at all, the engine first, its manifest last.

A reader that finds a manifest whose digest disagrees with its engine looked in between, or at a stale pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from contracts.errors import NotWritten, ToolFailure
from contracts.files import Content, holds, write_all_whole
from rknn_tts.places import ANOTHER_PLACE


def publish(files: Sequence[tuple[Path, Content]], remedy: str = ANOTHER_PLACE) -> None:
    """Write `files`, which appear in order; one that already has its content is left alone.

    Args:
        files: each a place and its content.
        remedy: what to do where one cannot be written.

    Raises:
        NotWritten: one cannot be written; the message names it. All of them are as they were.
    """
    try:
        write_all_whole([(path, data) for path, data in files if not _has_content(path, data)])
    except OSError as error:
        raise NotWritten(
            f"{error.filename}: cannot be written ({error.strerror or error}), so nothing was replaced; the finished "
            f"steps are kept: {remedy}."
        ) from error


def each_once(files: Iterable[tuple[Path, Content]]) -> list[tuple[Path, Content]]:
    """`files` in order, those that several engines bring (their host half) only once.

    Raises:
        ToolFailure: they bring unlike ones, of which the manifest of one would not be true.
    """
    found: dict[Path, Content] = {}
    for path, data in files:
        if found.setdefault(path, data) != data:
            raise ToolFailure(
                f"{path}: the engines of this set were made with unlike ones, so nothing was written. Run the command "
                "again with --force."
            )
    return list(found.items())


def _has_content(path: Path, data: Content) -> bool:
    try:
        return holds(path, data)
    except OSError:  # what cannot be read may still be replaced
        return False
