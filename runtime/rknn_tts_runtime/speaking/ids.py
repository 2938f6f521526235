"""Ids that a person gives, checked before anything runs.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path

from rknn_tts_runtime.faults import BadInput

MOST_IDS = 2048
"""Of a sentence, as of the toolchain's samples: Piper's default voice takes 37 ids a second, so 55 s. What a text
encoder attends with grows with the square of it."""


def checked_ids(ids: tuple[int, ...], symbols: int, where: Path) -> tuple[int, ...]:
    """`ids`, all of them of the voice in the host half `where`, which has so many `symbols`.

    Raises:
        BadInput: there are none, too many, or one is no id of the voice.
    """
    if not ids:
        raise BadInput("--ids: there is nothing to speak in it.")
    if len(ids) > MOST_IDS:
        raise BadInput(f"A sentence may have {MOST_IDS} ids, and this has {len(ids)}; part it into shorter ones.")
    wrong = [number for number in ids if not 0 <= number < symbols]
    if wrong:
        raise BadInput(
            f"--ids: {wrong[0]} is no id of the voice in {where.name}, whose ids go from 0 to {symbols - 1}."
        )
    return ids
