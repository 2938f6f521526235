"""What several parts of an Inflect model share; sequences are [1, C, T], time last."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-5
"""Of the layer norms; written out in VITS's, in no config."""


class ChannelNorm(nn.Module):
    """A layer norm over the channels of each step, under VITS's names."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T]."""
        rows = x.transpose(1, -1)
        return functional.layer_norm(rows, self.gamma.shape, self.gamma, self.beta, EPSILON).transpose(1, -1)


def conv(ins: int, outs: int, kernel: int, dilation: int = 1, bias: bool = True) -> nn.Conv1d:
    """A convolution of odd `kernel` that keeps the length."""
    return nn.Conv1d(ins, outs, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2, bias=bias)


def length_mask(lengths: Tensor, size: Tensor | int) -> Tensor:
    """[1, 1, size] float32: 1 up to `lengths` int64 [1], and 0 behind."""
    places = torch.arange(size, device=lengths.device)  # type: ignore[arg-type]  # of a tensor too, which is traced
    return (places < lengths[:, None])[:, None].float()
