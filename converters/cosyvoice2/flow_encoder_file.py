"""The flow encoder of CosyVoice2's `flow.pt`, read: its tensors and the sizes that they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.cosyvoice_files import FLOW
from converters.stages import Checkpoint
from converters.torch_weights import check_weights, numbers_behind, read_weights, shape_of
from models.cosyvoice2.encoder_config import (
    ENCODER,
    PROJECTION,
    SPEAKER,
    STACKS,
    TABLE,
    TRUE_CONFIG,
    EncoderConfig,
    layout,
)

WHOSE = "CosyVoice2's flow encoder"
ADVICE = f"give CosyVoice2-0.5B's {FLOW}, or its folder"

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class OpenEncoder:
    """An encoder's weights.

    Attributes:
        config: their sizes.
        weights: under a checkpoint's names (`models.cosyvoice2.encoder_config.layout`).
    """

    config: EncoderConfig
    weights: Weights


def open_encoder(checkpoint: Checkpoint) -> OpenEncoder:
    """The encoder of a located checkpoint.

    Raises:
        UserInput: the file is missing, damaged, or no torch file.
        Refusal: it is no flow of CosyVoice2, or holds NaN.
    """
    if checkpoint.source.kind == RANDOM:
        from models.cosyvoice2.encoder_stand_in import stand_in

        return OpenEncoder(TRUE_CONFIG, stand_in(TRUE_CONFIG, SEED))
    path = checkpoint.path
    weights = read_weights(path, WHOSE, ADVICE, (ENCODER, PROJECTION, TABLE, SPEAKER))
    config = _config(weights, path)
    shapes = layout(config)
    check_weights(weights, shapes, path, WHOSE, ADVICE, alone=True)
    return OpenEncoder(config, {name: weights[name] for name in shapes})


def _config(weights: Weights, path: Path) -> EncoderConfig:
    """The sizes, from one tensor each; whether the others fit is seen later."""
    block = f"{ENCODER}{STACKS[0]}.0"
    tokens, width = _shape(weights, f"{TABLE}.weight", 2, path)
    heads, head_dim = _shape(weights, f"{block}.self_attn.pos_bias_u", 2, path)
    units = _shape(weights, f"{block}.feed_forward.w_1.weight", 2, path)[0]
    taps = _shape(weights, f"{ENCODER}pre_lookahead_layer.conv1.weight", 3, path)[2]
    mel, speaker = _shape(weights, f"{SPEAKER}.weight", 2, path)
    if heads * head_dim != width or width % 2:
        raise Refusal(
            f"{path}: is not {WHOSE}: {heads} heads of {head_dim} are no signal of {width} channels, an even number; "
            f"{ADVICE}."
        )
    blocks, up_blocks = (numbers_behind(weights, f"{ENCODER}{stack}.") for stack in STACKS)
    return EncoderConfig(tokens, width, heads, units, blocks, up_blocks, taps - 1, mel, speaker)


def _shape(weights: Weights, name: str, axes: int, path: Path) -> tuple[int, ...]:
    return shape_of(weights, name, axes, path, WHOSE, ADVICE)
