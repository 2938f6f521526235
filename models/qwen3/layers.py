"""Layers of Qwen3's speech decoder, in the reference's arithmetic and under a checkpoint's names.

Sequences are [1, C, T], time last. Every convolution is causal: it sees zeros before the first step. What a layer
learned comes from a checkpoint (`models.qwen3.decoder.decoder_of`); a module that is made holds nothing yet.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.config import DILATIONS, SEVEN

LAYER_NORM_EPSILON = 1e-6
"""Of the ConvNeXt blocks' norms; written out in the reference, in no config."""

SNAKE_EPSILON = 1e-9
"""Added to SnakeBeta's e^beta before it divides; written out in the reference."""


class CausalConv(nn.Module):
    """A convolution of stride 1 that is padded on the left only."""

    def __init__(self, ins: int, outs: int, kernel: int, dilation: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(ins, outs, kernel, dilation=dilation, groups=groups)

    @property
    def history(self) -> int:
        """Earlier steps of its input that an output sees."""
        return int(self.conv.dilation[0] * (self.conv.kernel_size[0] - 1))

    def forward(self, x: Tensor) -> Tensor:
        """X [1, I, T] -> [1, O, T]."""
        out: Tensor = self.conv(functional.pad(x, (self.history, 0)))
        return out


class CausalTransposedConv(nn.Module):
    """A transposed convolution cut on the right, so that an output depends on no later input."""

    def __init__(self, ins: int, outs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(ins, outs, kernel, stride=stride)

    @property
    def rate(self) -> int:
        """Outputs for each input."""
        return int(self.conv.stride[0])

    @property
    def history(self) -> int:
        """Earlier inputs that an output sees."""
        return -(-int(self.conv.kernel_size[0]) // self.rate) - 1

    def forward(self, x: Tensor) -> Tensor:
        """X [1, I, T] -> [1, O, T rate]."""
        out: Tensor = self.conv(x)
        return out[..., : x.shape[-1] * self.rate]


class SnakeBeta(nn.Module):
    """x + sin^2(x e^alpha) / (e^beta + 1e-9), for each channel (BigVGAN; Snake: arXiv:2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(channels), requires_grad=False)
        self.beta = nn.Parameter(torch.zeros(channels), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        scale, size = torch.exp(self.alpha), torch.exp(self.beta) + SNAKE_EPSILON
        return x + torch.sin(x * scale[:, None]) ** 2 / size[:, None]


class ConvNeXt(nn.Module):
    """A depthwise causal convolution, LayerNorm and two pointwise layers around a GELU, and the input added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dwconv = CausalConv(channels, channels, SEVEN, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=LAYER_NORM_EPSILON)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.zeros(channels), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        inner = self.norm(self.dwconv(x).transpose(1, 2))
        inner = self.pwconv2(functional.gelu(self.pwconv1(inner)))
        out: Tensor = x + (self.gamma * inner).transpose(1, 2)
        return out


class ResidualUnit(nn.Module):
    """SnakeBeta, a dilated convolution, SnakeBeta and a pointwise one, and the input added."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.act1, self.act2 = SnakeBeta(channels), SnakeBeta(channels)
        self.conv1 = CausalConv(channels, channels, SEVEN, dilation=dilation)
        self.conv2 = CausalConv(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        out: Tensor = self.conv2(self.act2(self.conv1(self.act1(x)))) + x
        return out


class WaveBlock(nn.Module):
    """SnakeBeta, an upsampling by `rate` to half the channels, and three residual units."""

    def __init__(self, channels: int, rate: int) -> None:
        super().__init__()
        half = channels // 2
        units = [ResidualUnit(half, dilation) for dilation in DILATIONS]
        self.block = nn.Sequential(SnakeBeta(channels), CausalTransposedConv(channels, half, 2 * rate, rate), *units)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T] -> [1, C // 2, T rate]."""
        out: Tensor = self.block(x)
        return out
