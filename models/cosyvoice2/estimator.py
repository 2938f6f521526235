"""CosyVoice2's flow estimator in its own arithmetic, whole: the velocity of a mel on its way from noise.

    x, mu, cond [2, 80, T], mask [2, 1, T], t [2], spks [2, 80]  ->  [2, 80, T]

A causal U-net of one level: blocks of a residual block, whose convolutions see two frames of the past, and transformer
layers, which know no order of frames. All frames see all real frames; or, in chunks, a frame sees those of its own
chunk and of the past. What an NPU runs is `models.cosyvoice2.estimator_graphs`, made of the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from models.cosyvoice2.estimator_config import HEAD_DIM, KERNEL, EstimatorConfig

Weights = Mapping[str, Tensor]

EPSILON = 1e-5
"""Of every norm: torch's default."""

TIME_SCALE, PERIOD = 1000.0, 10_000.0
"""Of the time's sinusoids: t is counted in thousandths, and the longest wave is so many times the shortest."""

HIDDEN = -1e10
"""Added to the score of a frame that is not seen, as in the original."""


def velocity(
    weights: Weights,
    config: EstimatorConfig,
    x: Tensor,
    mask: Tensor,
    mu: Tensor,
    t: Tensor,
    spks: Tensor,
    cond: Tensor,
    seen: Tensor | None = None,
) -> Tensor:
    """The velocity [2, mel, T].

    Args:
        weights: by their names in `estimator_config.layout`.
        config: the sizes.
        x: the noised mel [2, mel, T]; row 0 is with its conditions, row 1 without.
        mask: 1 for real frames, 0 for padding [2, 1, T].
        mu: the mel that the encoder predicts, as x.
        t: the time, 0 to 1 [2].
        spks: the speaker [2, mel].
        cond: the mel of the prompt, and zeros behind it, as x.
        seen: which frames (columns) a frame (row) sees, of real ones [T, T]; None: all.
    """
    time = embedded_time(weights, config, t)
    bias = (1 - mask * (1 if seen is None else seen)) * HIDDEN  # [2, 1 or T, T]
    stream = torch.cat((x, mu, spks[:, :, None].expand_as(x), cond), dim=1)
    first, last = config.blocks[0], config.blocks[-1]
    down = None
    for block in config.blocks:
        if block == last and down is not None:
            stream = torch.cat((stream, down), dim=1)
        stream = _residual(weights, f"{block}.0", stream, mask, time)
        rows = stream.transpose(1, 2)
        for number in range(config.depth):
            rows = _transformer(weights, f"{block}.1.{number}", rows, bias)
        stream = rows.transpose(1, 2)
        down = stream if block == first else down
        if block in (first, last):
            stream = _causal(weights, f"{block}.2", stream * mask)
    stream = _normed(weights, "final_block", stream, mask)
    return functional.conv1d(stream * mask, *_of(weights, "final_proj")) * mask


def embedded_time(weights: Weights, config: EstimatorConfig, t: Tensor) -> Tensor:
    """The time [N] as every residual block reads it: [N, time], before their Mish."""
    half = config.given // 2
    rates = torch.exp(torch.arange(half).float() * -(math.log(PERIOD) / (half - 1))).to(t.dtype)
    angles = TIME_SCALE * t[:, None] * rates
    waves = torch.cat((angles.sin(), angles.cos()), dim=-1)
    hidden = functional.silu(functional.linear(waves, *_of(weights, "time_mlp.linear_1")))
    return functional.linear(hidden, *_of(weights, "time_mlp.linear_2"))


def chunk_sight(frames: int, chunk: int, history: int | None = None) -> Tensor:
    """Which frames a frame sees where they come in chunks: [T, T] of 1 and 0.

    Args:
        frames: T.
        chunk: frames of a chunk; the last one may be shorter.
        history: frames before a chunk that its frames see; None: all.
    """
    place = torch.arange(frames)
    start = place // chunk * chunk
    behind = place[None] >= start[:, None] - (frames if history is None else history)
    return (behind & (place[None] < start[:, None] + chunk)).float()


def _of(weights: Weights, name: str) -> tuple[Tensor, Tensor | None]:
    return weights[f"{name}.weight"], weights.get(f"{name}.bias")


def _causal(weights: Weights, name: str, stream: Tensor) -> Tensor:
    return functional.conv1d(functional.pad(stream, (KERNEL - 1, 0)), *_of(weights, name))


def _norm(weights: Weights, name: str, rows: Tensor) -> Tensor:
    return functional.layer_norm(rows, rows.shape[-1:], *_of(weights, name), EPSILON)


def _normed(weights: Weights, name: str, stream: Tensor, mask: Tensor) -> Tensor:
    made = _causal(weights, f"{name}.block.0", stream * mask).transpose(1, 2)
    return functional.mish(_norm(weights, f"{name}.block.2", made).transpose(1, 2)) * mask


def _residual(weights: Weights, name: str, stream: Tensor, mask: Tensor, time: Tensor) -> Tensor:
    shift = functional.linear(functional.mish(time), *_of(weights, f"{name}.mlp.1"))
    made = _normed(weights, f"{name}.block1", stream, mask) + shift[:, :, None]
    made = _normed(weights, f"{name}.block2", made, mask)
    return made + functional.conv1d(stream * mask, *_of(weights, f"{name}.res_conv"))


def _transformer(weights: Weights, name: str, rows: Tensor, bias: Tensor) -> Tensor:
    normed = _norm(weights, f"{name}.norm1", rows)
    query, key, value = (
        functional.linear(normed, weights[f"{name}.attn1.to_{part}.weight"])
        .reshape(*rows.shape[:2], -1, HEAD_DIM)
        .transpose(1, 2)
        for part in ("q", "k", "v")
    )
    scores = query @ key.transpose(2, 3) / math.sqrt(HEAD_DIM) + bias[:, None]
    mixed = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(*rows.shape[:2], -1)
    rows = rows + functional.linear(mixed, *_of(weights, f"{name}.attn1.to_out.0"))
    hidden = functional.linear(_norm(weights, f"{name}.norm3", rows), *_of(weights, f"{name}.ff.net.0.proj"))
    return rows + functional.linear(functional.gelu(hidden), *_of(weights, f"{name}.ff.net.2"))
