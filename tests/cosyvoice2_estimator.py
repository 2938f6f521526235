"""A small CosyVoice2 flow estimator for tests: its weights, its file, and the original at the same weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from converters.cosyvoice2.flow_estimator_drawn import Stream, drawn_stream
from models.cosyvoice2.estimator_config import HEAD_DIM, EstimatorConfig
from models.cosyvoice2.estimator_stand_in import stand_in
from tests.cosyvoice_reference import cosyvoice_module

SMALL = EstimatorConfig(mel=10, channels=32, depth=2, mid=1, inner=128, hidden=128, time=128)
"""The original's class makes `hidden` and `time` of four times its channels."""

CHUNK, HISTORY = 8, 20
"""Frames; the latter is no multiple of the former, so that a chunk is written over the end of what is kept."""

Floats = NDArray[np.float32]


@cache
def weights_of(config: EstimatorConfig = SMALL) -> dict[str, Floats]:
    """As a file holds them, without what stands before their names there."""
    return stand_in(config, 0)


@cache
def tensors(config: EstimatorConfig = SMALL) -> dict[str, torch.Tensor]:
    """The same in torch."""
    return {name: torch.from_numpy(array) for name, array in weights_of(config).items()}


def write_flow(path: Path, change: dict[str, Floats | None] | None = None) -> Path:
    """A `flow.pt` of them, a tensor of the encoder in it; `change` takes the place of tensors, or takes them out."""
    held = {**weights_of(), **(change or {})}
    named = {f"decoder.estimator.{name}": torch.from_numpy(array) for name, array in held.items() if array is not None}
    torch.save({**named, "encoder.embed.half": torch.zeros(2, dtype=torch.float16), "epoch": 3}, path)
    return path


@cache
def original(config: EstimatorConfig = SMALL) -> Any:
    """The original at the same weights; streaming, its attention is in chunks of `CHUNK` frames."""
    made = cosyvoice_module("cosyvoice.flow.decoder").CausalConditionalDecoder(
        in_channels=config.given,
        out_channels=config.mel,
        channels=[config.channels],
        dropout=0.0,
        attention_head_dim=HEAD_DIM,
        n_blocks=config.depth,
        num_mid_blocks=config.mid,
        num_heads=config.heads,
        act_fn="gelu",
        static_chunk_size=CHUNK,
        num_decoding_left_chunks=-1,
    )
    made.load_state_dict(tensors(config), strict=True)
    return made.eval()


def by_original(stream: Stream, streaming: bool = False, real: int | None = None) -> Floats:
    """What the original gives for a stream, or for the first `real` frames of it."""
    mask = np.broadcast_to(np.arange(stream.x.shape[2]) < (real or stream.x.shape[2]), (2, 1, stream.x.shape[2]))
    arrays = (stream.x, mask.astype(np.float32), stream.mu, stream.t, stream.spks, stream.cond)
    with torch.no_grad():
        made: Floats = original()(*map(torch.from_numpy, arrays), streaming=streaming).numpy()
    return made


def drawn(frames: int, solver_step: int = 3) -> Stream:
    """A stream of so many frames."""
    return drawn_stream(SMALL, frames, solver_step)
