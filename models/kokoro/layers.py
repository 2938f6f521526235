"""Layers made of a checkpoint's arrays: their sizes are read off the arrays, which they share.

Each takes what stands under one name of a checkpoint (`under`), weight norm folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Arrays = Mapping[str, NDArray[np.float32]]
Layer = TypeVar("Layer", bound=nn.Module)


def as_tensor(array: NDArray[np.float32]) -> Tensor:
    """`array` itself, or a copy where it cannot be written to: torch has no such tensors and warns of it."""
    return torch.from_numpy(np.require(array, requirements="W"))


class Linear(nn.Module):
    """`weight` [O, I] and `bias` [O], applied to the last axis.

    The weight is held as a transposed view: torch's own Linear exports a Transpose for each use, and a layer that is
    used twelve times, as ALBERT's is, twelve copies of its weight once they are folded.
    """

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.weight = nn.Parameter(as_tensor(weights["weight"]).t(), requires_grad=False)
        self.bias = nn.Parameter(as_tensor(weights["bias"]), requires_grad=False)
        self.ins, self.outs = self.weight.shape

    def forward(self, x: Tensor) -> Tensor:
        """X [..., I] -> [..., O]."""
        return x @ self.weight + self.bias


def embedding(weights: Arrays) -> nn.Embedding:
    """`weight` [rows, C]."""
    rows, channels = weights["weight"].shape
    with torch.device("meta"):
        made = nn.Embedding(rows, channels)
    return _filled(made, weights)


def layer_norm(weights: Arrays, epsilon: float) -> nn.LayerNorm:
    """`weight` and `bias` [C], over the last axis."""
    with torch.device("meta"):
        made = nn.LayerNorm(weights["weight"].shape[0], eps=epsilon)
    return _filled(made, weights)


def convolution(weights: Arrays, stride: int = 1) -> nn.Conv1d:
    """`weight` [O, I, odd K], and `bias` [O] where there is one; padded by K // 2, so that at stride 1 length stays."""
    outs, ins, width = weights["weight"].shape
    with torch.device("meta"):
        made = nn.Conv1d(ins, outs, width, stride=stride, padding=width // 2, bias="bias" in weights)
    return _filled(made, weights)


def depthwise_doubling(weights: Arrays) -> nn.ConvTranspose1d:
    """`weight` [C, 1, 3] and `bias` [C]: each channel's own transposed convolution, T columns to 2 T."""
    channels, _, width = weights["weight"].shape
    with torch.device("meta"):
        made = nn.ConvTranspose1d(
            channels, channels, width, stride=2, padding=width // 2, output_padding=1, groups=channels
        )
    return _filled(made, weights)


def lstm(weights: Arrays) -> nn.LSTM:
    """torch's names (`weight_ih_l0` [4 H, I] and so on): one layer, both directions, on [1, T, I], out [1, T, 2 H]."""
    hidden = weights["weight_hh_l0"].shape[1]
    with torch.device("meta"):
        made = nn.LSTM(weights["weight_ih_l0"].shape[1], hidden, batch_first=True, bidirectional=True)
    return _filled(made, weights)


def _filled(module: Layer, weights: Arrays) -> Layer:
    module.load_state_dict({name: as_tensor(array) for name, array in weights.items()}, assign=True)
    return module.requires_grad_(False)
