"""CosyVoice2's vocoder from mel frames to the spectrogram, inference only (HiFTNet, arXiv:2309.09493).

    mel [1, 80, W], har [1, 18, 120 W + 1]  ->  spec_phase [1, 18, 120 W + 1]

har: real and imaginary parts of the harmonic source's STFT. The first nine rows of spec_phase are the magnitude's
logarithm, the others what the phase is the sine of; pitch, source, STFT and iSTFT stay outside. For each of three
stages: LeakyRelu, transposed convolution, plus a branch of the source, then the mean of three residual blocks. The last
stage reflects one column on the left. A residual block is three times Snake, dilated convolution, Snake, convolution.
There is no norm: a frame depends on what is near (`receptive_frames`), and both ends of a window see zeros.

Module names are those of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.hift_config import (
    BINS,
    DILATIONS,
    EDGE_KERNEL,
    INNER_SLOPE,
    RESBLOCK_KERNELS,
    SOURCE_KERNELS,
    UPSAMPLE_KERNELS,
    UPSAMPLE_RATES,
    HiftConfig,
    source_strides,
)

EPSILON = 1e-9
"""Added to a Snake's alpha before it divides; written out in the reference."""

LAST_SLOPE = 0.01
"""Of the LeakyRelu before the last convolution: torch's default."""

LARGEST_STRIDE, SOURCE_BLOCK = 7, 5
"""What the hardware's field holds (toolkit-facts), and the columns of a block where a stride is larger."""

Arrays = Mapping[str, NDArray[np.float32]]


class Snake(nn.Module):
    """x + sin^2(alpha x) / (alpha + 1e-9), alpha one for each channel (arXiv:2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(channels), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [1, C, T] -> [1, C, T]."""
        return x + torch.sin(x * self.alpha[:, None]) ** 2 / (self.alpha[:, None] + EPSILON)


class ResidualBlock(nn.Module):
    """For each dilation: Snake, dilated convolution, Snake, convolution, plus what went in."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int] = DILATIONS) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(_conv(channels, channels, kernel, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(_conv(channels, channels, kernel) for _ in dilations)
        self.activations1 = nn.ModuleList(Snake(channels) for _ in dilations)
        self.activations2 = nn.ModuleList(Snake(channels) for _ in dilations)

    def forward(self, x: Tensor) -> Tensor:
        """x [1, C, T] -> [1, C, T]."""
        steps = zip(self.activations1, self.convs1, self.activations2, self.convs2, strict=True)
        for first, dilated, second, plain in steps:
            x = plain(second(dilated(first(x)))) + x
        return x


class SourceDown(nn.Module):
    """A convolution that makes T of stride T + 1 columns; of stride 1 it is a product for each column.

    The hardware's field holds strides up to 7, and 15 is needed. So blocks of 5 columns become channels, by a
    convolution of ones and zeros (a Reshape would run on the CPU), and a convolution of stride 3 over the blocks has
    the same products. Blocks start at column -2: what the original pads beyond those two at each end is a block of
    zeros, which the second convolution pads.
    """

    def __init__(self, ins: int, outs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.zeros(outs, ins, 1 if stride == 1 else 2 * stride), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(outs), requires_grad=False)
        self.block = 1 if stride <= LARGEST_STRIDE else SOURCE_BLOCK

    def forward(self, har: Tensor) -> Tensor:
        """har [1, I, stride T + 1] -> [1, O, T]; of stride 1, [1, I, T] -> [1, O, T]."""
        if self.block == 1:
            return functional.conv1d(har, self.weight, self.bias, stride=self.stride, padding=self.stride // 2)
        outs, ins, taps = self.weight.shape
        blocks, ahead = taps // self.block, self.stride // 2 // self.block
        select = torch.eye(ins * self.block).reshape(ins * self.block, ins, self.block)
        columns = functional.conv1d(har, select, stride=self.block, padding=self.stride // 2 - ahead * self.block)
        weight = self.weight.reshape(outs, ins, blocks, self.block).transpose(2, 3).reshape(outs, -1, blocks)
        return functional.conv1d(columns, weight, self.bias, stride=self.stride // self.block, padding=ahead)


class Hift(nn.Module):
    """The vocoder; its weights are those of a checkpoint (`hift_of`)."""

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        stages = range(len(UPSAMPLE_RATES))
        channels = [config.stage_channels(stage) for stage in stages]
        self.conv_pre = _conv(config.mels, config.channels, EDGE_KERNEL)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(2 * outs, outs, kernel, stride=rate, padding=(kernel - rate) // 2)
            for outs, kernel, rate in zip(channels, UPSAMPLE_KERNELS, UPSAMPLE_RATES, strict=True)
        )
        self.source_downs = nn.ModuleList(
            SourceDown(2 * BINS, outs, stride) for outs, stride in zip(channels, source_strides(), strict=True)
        )
        self.source_resblocks = nn.ModuleList(map(ResidualBlock, channels, SOURCE_KERNELS))
        self.resblocks = nn.ModuleList(
            ResidualBlock(channels[stage], kernel) for stage in stages for kernel in RESBLOCK_KERNELS
        )
        self.conv_post = _conv(channels[-1], 2 * BINS, EDGE_KERNEL)

    def forward(self, mel: Tensor, har: Tensor) -> Tensor:
        """mel [1, M, W], har [1, 18, 120 W + 1] -> spec_phase [1, 18, 120 W + 1]."""
        x = self.conv_pre(mel)
        share = len(RESBLOCK_KERNELS)
        for stage, upsampling in enumerate(self.ups):
            x = upsampling(functional.leaky_relu(x, INNER_SLOPE))
            if stage == len(self.ups) - 1:
                x = torch.cat([x[..., 1:2], x], dim=-1)  # a reflection, of which the compiler has no NPU kernel
            x = x + self.source_resblocks[stage](self.source_downs[stage](har))
            blocks = [block(x) for block in self.resblocks[stage * share : (stage + 1) * share]]
            x = sum(blocks[1:], blocks[0]) * (1 / share)
        out: Tensor = self.conv_post(functional.leaky_relu(x, LAST_SLOPE))
        return out


def hift_of(weights: Arrays, config: HiftConfig) -> Hift:
    """The vocoder of a checkpoint.

    Args:
        weights: of a whole `hift.pt`, weight norm folded (`hift_config.layout`), shared with what is returned.
        config: its sizes.
    """
    with torch.device("meta"):
        made = Hift(config)
    given = {name: torch.from_numpy(np.require(weights[name], requirements="W")) for name in made.state_dict()}
    made.load_state_dict(given, assign=True)
    return made.eval().requires_grad_(False)


def _conv(ins: int, outs: int, kernel: int, dilation: int = 1) -> nn.Conv1d:
    """A convolution that keeps the length."""
    return nn.Conv1d(ins, outs, kernel, padding=(kernel - 1) * dilation // 2, dilation=dilation)
