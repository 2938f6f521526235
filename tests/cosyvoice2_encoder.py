"""Small CosyVoice2 flow encoders for tests: their weights, their file, and the original at the same weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.cosyvoice2.encoder import Encoder, encoder_of
from models.cosyvoice2.encoder_config import EncoderConfig
from models.cosyvoice2.encoder_stand_in import stand_in
from tests.cosyvoice_reference import cosyvoice_module

SMALL = EncoderConfig(tokens=40, width=32, heads=2, units=48, blocks=2, up_blocks=1, look_ahead=3, mel=10, speaker=12)

UPSTREAM = EncoderConfig(tokens=9, width=512, heads=8, units=64, blocks=1, up_blocks=4, look_ahead=3, mel=5, speaker=4)
"""The original's class has its width, its look-ahead and its number of later blocks written out."""

Floats = NDArray[np.float32]


@cache
def weights_of(config: EncoderConfig = SMALL) -> dict[str, Floats]:
    """As a file holds them."""
    return stand_in(config, 0)


@cache
def encoder(config: EncoderConfig = SMALL) -> Encoder:
    """Ours."""
    return encoder_of(weights_of(config), config)


def write_flow(path: Path, change: dict[str, Floats | None] | None = None, config: EncoderConfig = SMALL) -> Path:
    """A `flow.pt` of them, a tensor of the estimator in it; `change` takes the place of tensors, or takes them out."""
    held = {**weights_of(config), **(change or {})}
    tensors = {name: torch.from_numpy(array) for name, array in held.items() if array is not None}
    torch.save({**tensors, "decoder.estimator.half": torch.zeros(2, dtype=torch.float16), "epoch": 3}, path)
    return path


def original(chunk: int, config: EncoderConfig = UPSTREAM) -> Any:
    """The original at the same weights, its sizes as `cosyvoice2.yaml` has them, attention in chunks of so many."""
    made = cosyvoice_module("cosyvoice.transformer.upsample_encoder").UpsampleConformerEncoder(
        input_size=config.width,
        output_size=config.width,
        attention_heads=config.heads,
        linear_units=config.units,
        num_blocks=config.blocks,
        dropout_rate=0.1,
        positional_dropout_rate=0.1,
        attention_dropout_rate=0.1,
        normalize_before=True,
        input_layer="linear",
        pos_enc_layer_type="rel_pos_espnet",
        selfattention_layer_type="rel_selfattn",
        use_cnn_module=False,
        macaron_style=False,
        static_chunk_size=chunk,
    )
    weights = {
        name.removeprefix("encoder."): torch.from_numpy(array)
        for name, array in weights_of(config).items()
        if name.startswith("encoder.")
    }
    made.load_state_dict(weights, strict=True)
    return made.eval()


def drawn(count: int, config: EncoderConfig = SMALL, seed: int = 0) -> Tensor:
    """Embeddings of a stream [1, count, C]."""
    return torch.randn((1, count, config.width), generator=torch.Generator().manual_seed(seed))


def snr(wanted: Tensor, got: Tensor) -> float:
    """In dB."""
    assert wanted.shape == got.shape
    noise = (got.double() - wanted.double()).square().sum()
    return float(10 * torch.log10(wanted.double().square().sum() / noise))
