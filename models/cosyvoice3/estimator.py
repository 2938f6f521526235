"""CosyVoice3's flow estimator over a fixed number of frames, in the forms that cost an NPU least.

Signals are [2, C, 1, T], channels first, and linear layers convolutions of one tap. What comes out of frames that are
padding means nothing: upstream has numbers there that mean nothing either, but others.
"""

from __future__ import annotations

from math import pi, sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice3.config import PAIR
from models.cosyvoice3.dit import Block, Dit, Modulation, normed, rotary_angles
from models.cosyvoice3.layout import BLOCK_MODULATIONS, OUT_MODULATIONS
from models.cosyvoice3.npu_attention import NpuAttention, Rotation
from models.cosyvoice3.npu_time import NpuTime
from models.npu_layers import MASKED, convolution, linear, pointwise

GELU_CUBE = 0.044715
"""Of the cube in the GELU by a hyperbolic tangent (arXiv:1606.08415)."""


def channels_normed(x: Tensor) -> Tensor:
    """X [2, C, 1, T] without mean and of unit variance over its channels; one layer of the NPU (exNorm)."""
    return normed(x.permute(0, 2, 3, 1), x.shape[1]).permute(0, 3, 1, 2)


def gelu(x: Tensor) -> Tensor:
    """The GELU by a hyperbolic tangent as the compiler knows it, the cube as two products: one layer with a conv."""
    return x * (torch.tanh(sqrt(2 / pi) * (x + GELU_CUBE * (x * x * x))) + 1) * 0.5


def modulation(layer: Modulation, factors: tuple[int, ...]) -> nn.Conv2d:
    """Factors and shifts of a time; the places in `factors` are of what is multiplied by 1 more than is said."""
    bias = layer.linear.bias.clone().reshape(layer.count, -1)
    bias[list(factors)] += 1.0
    return pointwise(layer.linear.weight, bias.flatten())


class NpuBlock(nn.Module):
    """What `block` gives of real frames."""

    def __init__(self, block: Block, rotation: Rotation) -> None:
        super().__init__()
        self.modulation = modulation(block.attn_norm, (1, 4))
        self.attention = NpuAttention(block.attn, rotation)
        self.widen, self.narrow = (linear(layer) for layer in block.ff.layers)

    def forward(self, x: Tensor, time: Tensor, bias: Tensor, biases: Tensor) -> Tensor:
        """X [2, C, 1, T], time [2, C, 1, 1]; for the biases see `NpuAttention`."""
        shift, scale, gate, ff_shift, ff_scale, ff_gate = self.modulation(time).chunk(BLOCK_MODULATIONS, dim=1)
        x = x + gate * self.attention(channels_normed(x) * scale + shift, bias, biases)
        inner = gelu(self.widen(channels_normed(x) * ff_scale + ff_shift))
        out: Tensor = x + ff_gate * self.narrow(inner)
        return out


class Estimator(nn.Module):
    """What `dit` gives of real frames, for `frames` frames."""

    def __init__(self, dit: Dit, frames: int) -> None:
        super().__init__()
        self.config, self.frames = dit.config, frames
        self.time = NpuTime(dit.time_embed)
        self.proj = linear(dit.input_embed.proj)
        positions = dit.input_embed.conv_pos_embed
        self.past = positions.past
        self.positions = nn.ModuleList(
            convolution(layer.weight, layer.bias, groups=layer.groups) for layer in positions.convolutions
        )
        rotation = Rotation(rotary_angles(dit.rotary_embed.inv_freq, frames))
        self.blocks = nn.ModuleList(NpuBlock(block, rotation) for block in dit.blocks)
        self.modulation, self.out = modulation(dit.norm_out, (0,)), linear(dit.proj_out)

    def forward(self, x: Tensor, mask: Tensor, mu: Tensor, t: Tensor, spks: Tensor, cond: Tensor) -> Tensor:
        """The velocity of the flow, [2, mel, T]; for the arguments see `Dit.forward`."""
        config, frames = self.config, self.frames
        time = self.time(t.reshape(PAIR, 1, 1, 1))
        bias = (1 - mask) * MASKED
        rows = (PAIR, config.heads - 1, frames)
        biases = bias.expand(rows).reshape(PAIR * (config.heads - 1), 1, frames)
        speaker = spks[:, :, None, None].expand(PAIR, config.speaker, 1, frames)
        stream = self.proj(torch.cat((*(mel[:, :, None] for mel in (x, cond, mu)), speaker), dim=1))
        place = stream
        for layer in self.positions:
            place = functional.mish(layer(functional.pad(place, (self.past, 0))))
        stream = stream + place
        for block in self.blocks:
            stream = block(stream, time, bias, biases)
        scale, shift = self.modulation(time).chunk(OUT_MODULATIONS, dim=1)
        out: Tensor = self.out(channels_normed(stream) * scale + shift)
        return out.squeeze(2)
