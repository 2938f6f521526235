"""What a person sees of a farm that ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rknn_tts.blocks import Block


def farm_blocks(extra: Mapping[str, Any]) -> list[Block]:
    """What was made, what failed, and where the catalogue is."""
    return []
