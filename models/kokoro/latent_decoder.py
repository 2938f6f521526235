"""The decoder before its generator: aligned text, pitch and energy to the latent at the seam; inference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.kokoro.adain_blocks import AdainBlock
from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, convolution

DECODE_BLOCKS = 4
"""Each reads text, pitch and energy again beside the last one's output; the fourth doubles time. In no config."""


class LatentDecoder(nn.Module):
    """`weights` under `decoder.module`, weight norm folded; the generator among them is not used."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.pitch = convolution(under(weights, "F0_conv"), stride=2)
        self.energy = convolution(under(weights, "N_conv"), stride=2)
        self.text = convolution(under(weights, "asr_res.0"))
        self.encode = AdainBlock(under(weights, "encode"))
        self.decode = nn.ModuleList(AdainBlock(under(weights, f"decode.{i}")) for i in range(DECODE_BLOCKS))

    def forward(self, text: Tensor, pitch: Tensor, energy: Tensor, style: Tensor) -> Tensor:
        """Text [1, C, F], pitch and energy [1, 2 F], style [1, S] -> x [1, D, 2 F]."""
        curves = torch.cat([self.pitch(pitch.unsqueeze(1)), self.energy(energy.unsqueeze(1))], 1)
        x: Tensor = self.encode(torch.cat([text, curves], 1), style)
        beside = torch.cat([self.text(text), curves], 1)
        for block in self.decode:
            x = block(torch.cat([x, beside], 1), style)
        return x
