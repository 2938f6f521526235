"""Layers in the forms that cost an NPU least: signals are [N, C, 1, T], time last, and linear layers convolutions.

A batch stays a batch: the toolkit's layers take it as it is, and weights are read once for all of it.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

MASKED = -1e4
"""Added to the score of what is not seen: e^-10000 is 0 in every float, and the number fits into fp16."""


def pointwise(weight: Tensor, bias: Tensor | None) -> nn.Conv2d:
    """A linear layer [O, I] over the channels of [N, I, 1, T]."""
    return convolution(weight[:, :, None], bias)


def linear(layer: nn.Module) -> nn.Conv2d:
    """`layer`, a linear one, over the channels of [N, I, 1, T]; it shares the weights."""
    assert isinstance(layer, nn.Linear)
    return pointwise(layer.weight, layer.bias)


def convolution(weight: Tensor, bias: Tensor | None, dilation: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution [O, I / groups, K] over the time of [N, I, 1, T], of what has its past in front."""
    outs, ins, taps = weight.shape
    with torch.device("meta"):
        made = nn.Conv2d(ins * groups, outs, (1, taps), dilation=(1, dilation), groups=groups, bias=bias is not None)
    made.weight = nn.Parameter(weight.float()[:, :, None], requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.float(), requires_grad=False)
    return made


def channel_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Layer normalisation over the channels of [N, C, 1, T]: one layer of the NPU (exNorm), without its Transposes."""
    normed = functional.layer_norm(x.permute(0, 2, 3, 1), weight.shape, weight, bias, epsilon)
    return normed.permute(0, 3, 1, 2)


def gelu(x: Tensor) -> Tensor:
    """The exact GELU as the compiler knows it, with a division and its factor last: one layer with what is before."""
    return (x * (torch.erf(x / sqrt(2)) + 1)) * 0.5
