"""Qwen3's speech decoder over a whole utterance, in the reference's arithmetic: what everything else is compared with.

    codes [1, 16, N] -> quantizer -> hidden [1, 512, N] -> convolution, transformer, upsampling by 4, wave decoder
    -> audio [1, 1, 1920 N]

The seam is the hidden state behind the quantizer. Causal throughout: a sample depends on no later code.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.qwen3.config import PRE_CONV_KERNEL, SEVEN, DecoderConfig
from models.qwen3.layers import CausalConv, CausalTransposedConv, ConvNeXt, SnakeBeta, WaveBlock
from models.qwen3.quantizer import Quantizer
from models.qwen3.transformer import Transformer

Arrays = Mapping[str, NDArray[np.float32]]

PREFIX = "decoder."
"""Of the decoder's tensors in a checkpoint; others are the encoder's."""


class Decoder(nn.Module):
    """The whole decoder, under a checkpoint's names."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.quantizer = Quantizer(config)
        self.pre_conv = CausalConv(config.codebook_dim, config.latent_dim, PRE_CONV_KERNEL)
        self.pre_transformer = Transformer(config)
        width = config.latent_dim
        stages = [
            nn.Sequential(CausalTransposedConv(width, width, ratio, ratio), ConvNeXt(width))
            for ratio in config.upsampling_ratios
        ]
        self.upsample = nn.Sequential(*stages)
        blocks = [WaveBlock(config.block_channels(number), rate) for number, rate in enumerate(config.upsample_rates)]
        last = config.block_channels(len(blocks))
        self.decoder = nn.Sequential(
            CausalConv(width, config.decoder_dim, SEVEN), *blocks, SnakeBeta(last), CausalConv(last, 1, SEVEN)
        )

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [1, Q, N] (integers) -> audio [1, 1, 1920 N] in -1..1."""
        return self.voiced(self.quantizer(codes))

    def voiced(self, hidden: Tensor) -> Tensor:
        """The part behind the seam: hidden [1, codebook_dim, N] -> audio [1, 1, 1920 N]."""
        latent = self.pre_transformer(self.pre_conv(hidden).transpose(1, 2)).transpose(1, 2)
        audio: Tensor = self.decoder(self.upsample(latent))
        return audio.clamp(-1, 1)


def decoder_of(weights: Arrays, config: DecoderConfig) -> Decoder:
    """The decoder of a checkpoint's `decoder.*` tensors, all of them and no others; it shares their memory.

    Raises:
        RuntimeError: a tensor is missing, or has another shape.
    """
    with torch.device("meta"):
        made = Decoder(config)
    state = {
        name.removeprefix(PREFIX): torch.from_numpy(np.require(a, requirements="W")) for name, a in weights.items()
    }
    made.load_state_dict(state, strict=True, assign=True)
    for parameter in made.parameters():
        parameter.requires_grad_(False)
    return made.eval()


def decoded(decoder: Decoder, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Audio [1, 1, 1920 N] of `codes` [1, Q, N]."""
    with torch.no_grad():
        return np.asarray(decoder(torch.from_numpy(np.ascontiguousarray(codes))).float().numpy())
