"""What a person sees of a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rknn_tts.blocks import Block


def catalogue_blocks(extra: Mapping[str, Any]) -> list[Block]:
    """What there is, what failed, and what changed."""
    return []
