"""The wave generator, HiFi-GAN's (arXiv:2010.05646), inference only.

    x [1, C, N]  ->  samples [1, 1, hop N] in -1..1

For each stage: LeakyRelu, transposed convolution to half the channels, the mean of the residual blocks. Nothing in it
is masked.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.inflect.config import OUTER_KERNEL, InflectConfig
from models.inflect.layers import conv

INNER_SLOPE, LAST_SLOPE = 0.1, 0.01
"""LeakyRelu's slopes: written out in VITS, and torch's default before the last convolution."""


class ResidualBlock(nn.Module):
    """For each dilation: a convolution with it and one without, and what went in."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(conv(channels, channels, kernel, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(conv(channels, channels, kernel) for _ in dilations)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        for dilated, plain in zip(self.convs1, self.convs2, strict=True):
            inner = dilated(functional.leaky_relu(x, INNER_SLOPE))
            x = plain(functional.leaky_relu(inner, INNER_SLOPE)) + x
        return x


class Generator(nn.Module):
    """The whole of it; `dec` of a checkpoint."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.conv_pre = conv(config.inter_channels, config.upsample_initial_channel, OUTER_KERNEL)
        self.ups = nn.ModuleList()
        self.resblocks = nn.ModuleList()
        sizes = list(zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True))
        for stage, (rate, kernel) in enumerate(sizes):
            ins, outs = config.stage_channels(stage), config.stage_channels(stage + 1)
            self.ups.append(nn.ConvTranspose1d(ins, outs, kernel, stride=rate, padding=(kernel - rate) // 2))
            self.resblocks.extend(
                ResidualBlock(outs, width, dilations)
                for width, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
            )
        self.share = len(config.resblock_kernel_sizes)
        self.conv_post = conv(config.stage_channels(len(sizes)), 1, OUTER_KERNEL, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, N] -> [1, 1, hop N]."""
        x = self.conv_pre(x)
        for stage, upsampling in enumerate(self.ups):
            x = upsampling(functional.leaky_relu(x, INNER_SLOPE))
            blocks = [block(x) for block in self.resblocks[stage * self.share : (stage + 1) * self.share]]
            x = sum(blocks[1:], blocks[0]) / self.share
        return torch.tanh(self.conv_post(functional.leaky_relu(x, LAST_SLOPE)))
