"""A small Qwen3 checkpoint on disk, opened: two wave blocks and one layer, so that a step is traced in seconds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from converters.qwen3.checkpoint import locate
from converters.qwen3.opening import Opening
from converters.qwen3.snapshot import Weights
from converters.qwen3.stand_in import stand_in
from converters.stages import StageOptions
from models.qwen3.config import DecoderConfig
from tests.converters.hubs import no_hub
from tests.onnx_runs import open_session
from tests.qwen3_configs import REDUCED
from tests.qwen3_snapshots import write_snapshot

SMALL = replace(REDUCED, num_hidden_layers=1, decoder_dim=64, upsample_rates=(8, 3))
"""96 samples a code. Its step keeps 34 frames behind the first block, of which a code makes 32."""


@cache
def weights_of(config: DecoderConfig = SMALL) -> Weights:
    """Of the stand-in."""
    return stand_in(config, 0)


def write_small(root: Path, config: DecoderConfig = SMALL) -> Path:
    """A snapshot with them; its tokenizer's folder."""
    return write_snapshot(root, config, weights_of(config))


def open_small(folder: Path, codes: str = "16,4", **options: Any) -> Opening:
    """The snapshot in `folder`, opened with these options."""
    return Opening(locate(str(folder), no_hub), StageOptions(codes=codes, **options), open_session)
