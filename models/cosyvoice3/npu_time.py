"""A time's embedding by an NPU, which has a time as an fp16 number and computes in fp16 between layers.

Angles go up to 1000 radians, where fp16 has steps of half a radian: taken as they are they leave 33 dB of a whole
estimator at times near 1, where the rest has 61 (two blocks in the simulator, 2.3.2). So whole turns n are taken away
inside one convolution, whose sums are in float32:

    angle = t w - 2 pi n,  n = floor(t w / 2 pi + 1/2)

with w and 2 pi as sums of three fp16 numbers, so that every product is exact; the large ones, whose difference is
small, come first. Whether n is the nearest whole number or the one beside it is all the same to a sine. What is left is
the rounding of the time itself: a time that fp16 holds, which the host can choose, loses nothing.
"""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice3.dit import TimeEmbedding, time_frequencies
from models.npu_layers import linear, pointwise

PARTS = 3
"""fp16 numbers of 11 bits each that a weight is the sum of: more than the 24 bits of float32."""


def in_parts(weight: Tensor) -> list[Tensor]:
    """Numbers in double precision as PARTS that fp16 holds, which sum to them, the largest first."""
    parts = []
    for _ in range(PARTS):
        parts.append(weight.half().double())
        weight = weight - parts[-1]
    return parts


class NpuTime(nn.Module):
    """What blocks are moved by at a time."""

    def __init__(self, embedding: TimeEmbedding) -> None:
        super().__init__()
        frequencies = time_frequencies(embedding.frequencies)
        half = len(frequencies)
        self.turns = pointwise((frequencies[:, None] / (2 * pi)).float(), torch.full((half,), 0.5))
        turn = -2 * pi * torch.eye(half, dtype=torch.float64)
        weight = torch.cat(in_parts(torch.cat((frequencies[:, None], turn), dim=1)), dim=1).float()
        quarter = torch.cat((torch.zeros(half), torch.full((half,), pi / 2)))  # a cosine is the sine a quarter ahead
        self.angles = pointwise(torch.cat((weight, weight)), quarter)
        first, _, second = embedding.time_mlp
        self.first, self.second = linear(first), linear(second)

    def forward(self, t: Tensor) -> Tensor:
        """T [2, 1, 1, 1] to [2, C, 1, 1], behind the SiLU that every modulation begins with."""
        turns = torch.floor(self.turns(t))
        sines = torch.sin(self.angles(torch.cat([t, turns] * PARTS, dim=1)))
        return functional.silu(self.second(functional.silu(self.first(sines))))
