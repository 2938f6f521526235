"""Opens a Kokoro checkpoint at the generator's seam (`converters.kokoro.stage` declares the stage). Imports torch."""

from __future__ import annotations

from functools import cache

from converters.kokoro.full_engine import full_export
from converters.kokoro.geometry import FULL
from converters.kokoro.opening import Opening
from converters.kokoro.short_engine import short_export
from converters.stages import Checkpoint, Opened, OpenSession, StageExport, StageOptions


def open_generator(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    """Open a Kokoro checkpoint at the generator's seam.

    Raises:
        UserInput, Refusal: see `open_checkpoint`, `geometry_of`.
    """
    opening = Opening(checkpoint, options, open_session)

    def export(role: str) -> StageExport:
        return full_export(opening) if role == FULL else short_export(opening)

    return cache(export)
