"""What `--checkpoint` may name for Qwen3, found; and an open one's sizes and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from converters.hub_places import HUB
from converters.qwen3.hub import fetch_tokenizer
from converters.qwen3.snapshot import Weights, open_snapshot
from converters.qwen3.stand_in import RANDOM, stand_in, stand_in_source
from converters.stages import Checkpoint, FetchHub
from models.qwen3.config import SAMPLE_RATE, TRUE_CONFIG, DecoderConfig

SEED = 0
"""Of the stand-in's weights."""

STAND_IN = (
    "the weights are seeded random numbers at the published sizes: a stand-in for a checkpoint, nobody's voice; "
    "--checkpoint SNAPSHOT names a real one"
)


@dataclass(frozen=True)
class OpenCheckpoint:
    """A checkpoint's sizes, and its weights when they are asked for.

    Attributes:
        config: the decoder's sizes.
        sample_rate: in Hz.
        weights: reads the decoder's tensors.
    """

    config: DecoderConfig
    sample_rate: int
    weights: Callable[[], Weights]


def locate(text: str, fetch_hub: FetchHub) -> Checkpoint:
    """The checkpoint that a user names: `random`, a place on a hub, or a snapshot's folder or a file in it.

    Raises:
        UserInput: it is none of these; one sentence.
    """
    if text == RANDOM:
        return Checkpoint(Path(RANDOM), stand_in_source(TRUE_CONFIG, SEED), note=STAND_IN, files=())
    path = fetch_tokenizer(text, fetch_hub) if text.startswith(HUB) else Path(text)
    snapshot = open_snapshot(path)
    return Checkpoint(path, snapshot.source(), files=snapshot.files)


def open_checkpoint(checkpoint: Checkpoint) -> OpenCheckpoint:
    """The sizes of a located checkpoint, and a way to its weights.

    Raises:
        UserInput: it is damaged, or has changed into another.
    """
    if checkpoint.source.kind == RANDOM:
        return OpenCheckpoint(TRUE_CONFIG, SAMPLE_RATE, lambda: stand_in(TRUE_CONFIG, SEED))
    snapshot = open_snapshot(checkpoint.path)
    return OpenCheckpoint(snapshot.config, snapshot.sample_rate, snapshot.weights)
