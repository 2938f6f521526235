"""CosyVoice3's flow estimator in its own arithmetic: a diffusion transformer (arXiv:2212.09748) over mel frames.

Modules are called as a checkpoint's tensors are. A frame sees every real frame; the stream is [2, T, C]. What an NPU
runs is `models.cosyvoice3.estimator`, made of this one's weights.
"""

from __future__ import annotations

from math import log, sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice3.config import ROTARY_BASE, DitConfig
from models.cosyvoice3.layout import BLOCK_MODULATIONS, OUT_MODULATIONS

NORM_EPSILON = 1e-6
"""Of every layer normalisation, none of which has weights."""

TIME_SCALE, LONGEST_WAVE = 1000.0, 10000.0
"""What a time from 0 to 1 is multiplied by before it is embedded, and the ratio of the embedding's highest frequency to
its lowest."""


def normed(x: Tensor, width: int) -> Tensor:
    """X [..., width] without mean and of unit variance over its channels."""
    return functional.layer_norm(x, (width,), None, None, NORM_EPSILON)


def time_frequencies(width: int) -> Tensor:
    """Radians per unit of time, [width / 2] in double precision, of the sines and cosines that a time becomes."""
    half = width // 2
    exponents = torch.arange(half, dtype=torch.float64) / (half - 1)
    return TIME_SCALE * torch.exp(-log(LONGEST_WAVE) * exponents)


def rotary_angles(inverse: Tensor, frames: int) -> Tensor:
    """Angles [frames, D] of each frame, those of neighbouring channels alike; `inverse` [D / 2] is radians a frame."""
    angles = torch.arange(frames, dtype=inverse.dtype)[:, None] * inverse
    return torch.stack((angles, angles), dim=-1).reshape(frames, 2 * len(inverse))


def turned(x: Tensor) -> Tensor:
    """[..., D] -> neighbours (a, b) as (-b, a): what the sine multiplies."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)


class TimeEmbedding(nn.Module):
    """A time from 0 to 1 as sines and cosines, through two linear layers."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.frequencies = config.frequencies
        self.time_mlp = nn.Sequential(
            nn.Linear(config.frequencies, config.width), nn.SiLU(), nn.Linear(config.width, config.width)
        )

    def forward(self, t: Tensor) -> Tensor:
        """T [2] to [2, C]."""
        # In float32 as upstream: its rounding at 1000 radians is part of what was trained.
        half = self.frequencies // 2
        steps = torch.exp(torch.arange(half, dtype=torch.float32) * -(log(LONGEST_WAVE) / (half - 1)))
        angles = TIME_SCALE * t[:, None] * steps
        out: Tensor = self.time_mlp(torch.cat((angles.sin(), angles.cos()), dim=-1))
        return out


class PositionEmbedding(nn.Module):
    """Two grouped convolutions of a frame and those before it, each with Mish behind it."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.past = config.kernel - 1
        self.conv1, self.conv2 = (
            nn.Sequential(nn.Conv1d(config.width, config.width, config.kernel, groups=config.groups), nn.Mish())
            for _ in range(2)
        )

    @property
    def convolutions(self) -> tuple[nn.Conv1d, ...]:
        """Both, in their order."""
        found = tuple(layer[0] for layer in (self.conv1, self.conv2))
        return tuple(layer for layer in found if isinstance(layer, nn.Conv1d))

    def forward(self, x: Tensor) -> Tensor:
        """X [2, T, C]."""
        x = x.transpose(1, 2)
        for layer in (self.conv1, self.conv2):
            x = layer(functional.pad(x, (self.past, 0)))
        return x.transpose(1, 2)


class InputEmbedding(nn.Module):
    """All that is known of a frame, as the stream."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.proj = nn.Linear(3 * config.mel + config.speaker, config.width)
        self.conv_pos_embed = PositionEmbedding(config)

    def forward(self, x: Tensor, cond: Tensor, mu: Tensor, spks: Tensor) -> Tensor:
        """X, cond and mu [2, T, mel], spks [2, speaker]."""
        x = self.proj(torch.cat((x, cond, mu, spks[:, None].expand(-1, x.shape[1], -1)), dim=-1))
        out: Tensor = x + self.conv_pos_embed(x)
        return out


class Modulation(nn.Module):
    """`count` factors and shifts of the stream's channels, of the time's embedding."""

    def __init__(self, config: DitConfig, count: int) -> None:
        super().__init__()
        self.count = count
        self.linear = nn.Linear(config.width, count * config.width)

    def forward(self, time: Tensor) -> tuple[Tensor, ...]:
        """Time [2, C] to `count` of [2, 1, C]."""
        return self.linear(functional.silu(time))[:, None].chunk(self.count, dim=-1)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Self-attention; queries and keys of the first head are turned by the frame's place."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.heads, config.head_dim
        inner = config.heads * config.head_dim
        self.to_q, self.to_k, self.to_v = (nn.Linear(config.width, inner) for _ in range(3))
        self.to_out = nn.ModuleList((nn.Linear(inner, config.width),))

    @property
    def out(self) -> nn.Linear:
        """The layer behind all heads."""
        layer = self.to_out[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(self, x: Tensor, angles: Tensor, real: Tensor) -> Tensor:
        """X [2, T, C], angles [T, head_dim], real [2, 1, T], true of frames that count."""
        query, key, value = (
            layer(x).view(x.shape[0], x.shape[1], self.heads, self.head_dim).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        query, key = (
            torch.cat((one[:, :1] * angles.cos() + turned(one[:, :1]) * angles.sin(), one[:, 1:]), dim=1)
            for one in (query, key)
        )
        scores = (query @ key.transpose(2, 3) / sqrt(self.head_dim)).masked_fill(~real[:, None], -torch.inf)
        mixed = torch.softmax(scores, dim=-1) @ value
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], self.heads * self.head_dim))
        return out.masked_fill(~real.transpose(1, 2), 0.0)


class FeedForward(nn.Module):
    """Two linear layers around a GELU, in the form of a hyperbolic tangent."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        first = nn.Sequential(nn.Linear(config.width, config.inner), nn.GELU(approximate="tanh"))
        self.ff = nn.Sequential(first, nn.Identity(), nn.Linear(config.inner, config.width))

    @property
    def layers(self) -> tuple[nn.Linear, nn.Linear]:
        """The one that widens, and the one that narrows."""
        widen, narrow = (layer for layer in self.ff.modules() if isinstance(layer, nn.Linear))
        return widen, narrow

    def forward(self, x: Tensor) -> Tensor:
        """X [2, T, C]."""
        out: Tensor = self.ff(x)
        return out


class Block(nn.Module):
    """Attention and feed-forward; the time moves what each takes and gates what it gives."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.width, self.attn_norm = config.width, Modulation(config, BLOCK_MODULATIONS)
        self.attn, self.ff = Attention(config), FeedForward(config)

    def forward(self, x: Tensor, time: Tensor, angles: Tensor, real: Tensor) -> Tensor:
        """X [2, T, C], time [2, C]."""
        shift, scale, gate, ff_shift, ff_scale, ff_gate = self.attn_norm(time)
        x = x + gate * self.attn(normed(x, self.width) * (1 + scale) + shift, angles, real)
        out: Tensor = x + ff_gate * self.ff(normed(x, self.width) * (1 + ff_scale) + ff_shift)
        return out


class Rotary(nn.Module):
    """Holds the radians a frame of each pair of channels."""

    inv_freq: Tensor

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
        self.register_buffer("inv_freq", 1.0 / ROTARY_BASE**exponents)


class Dit(nn.Module):
    """The estimator: what a flow's noise should change by at a time."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.config = config
        self.time_embed, self.input_embed = TimeEmbedding(config), InputEmbedding(config)
        self.rotary_embed = Rotary(config)
        self.transformer_blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm_out = Modulation(config, OUT_MODULATIONS)
        self.proj_out = nn.Linear(config.width, config.mel)

    @property
    def blocks(self) -> list[Block]:
        """All of them, in their order."""
        return [block for block in self.transformer_blocks if isinstance(block, Block)]

    def forward(self, x: Tensor, mask: Tensor, mu: Tensor, t: Tensor, spks: Tensor, cond: Tensor) -> Tensor:
        """The velocity of the flow.

        Args:
            x: the noised mel, [2, mel, T].
            mask: [2, 1, T], 1 for frames that count and 0 for padding.
            mu: the predicted mel, [2, mel, T].
            t: the time of each row, 0 to 1, [2].
            spks: the speaker, [2, speaker].
            cond: the prompt's mel, [2, mel, T].

        Returns:
            [2, mel, T]; of padding, numbers that mean nothing.
        """
        time, real = self.time_embed(t), mask.bool()
        stream = self.input_embed(x.transpose(1, 2), cond.transpose(1, 2), mu.transpose(1, 2), spks)
        angles = rotary_angles(self.rotary_embed.inv_freq, x.shape[2])
        for block in self.transformer_blocks:
            stream = block(stream, time, angles, real)
        scale, shift = self.norm_out(time)
        out: Tensor = self.proj_out(normed(stream, self.config.width) * (1 + scale) + shift)
        return out.transpose(1, 2)
