"""What a checkpoint holds of CosyVoice3's flow estimator, and what that takes and gives, from its sizes; no torch.

Names are those of upstream's module. The published estimator has 323 of them: 331,142,224 numbers, and 32 that its
rotation turns by.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.cosyvoice3.config import PAIR, DitConfig

Shape = tuple[int, ...]
Tensors = Iterator[tuple[str, Shape]]

BLOCKS = "transformer_blocks."
"""Begins the names of all blocks' tensors; a number follows."""

ROTARY = "rotary_embed.inv_freq"
"""Radians a frame, of each pair of channels of the first head."""

MODULATION, OUT_MODULATION = ".attn_norm.linear.weight", "norm_out.linear.weight"
"""End the names of what a time's embedding becomes shifts, factors and gates by."""

BLOCK_MODULATIONS, OUT_MODULATIONS = 6, 2
"""How many shifts, factors and gates those give."""

POSITIONS = tuple(f"input_embed.conv_pos_embed.conv{number}.0" for number in (1, 2))
"""The convolutions of the position embedding."""


INPUTS = ("x", "mask", "mu", "t", "spks", "cond")
OUTPUT = "estimator_out"
"""Names of the published estimator's inputs, in its order, and of its output."""


def input_shapes(config: DitConfig, frames: int) -> dict[str, tuple[int, ...]]:
    """Of the estimator's inputs for so many frames, by name, in order."""
    mel = (PAIR, config.mel, frames)
    shapes = {"mask": (PAIR, 1, frames), "t": (PAIR,), "spks": (PAIR, config.speaker)}
    return {name: shapes.get(name, mel) for name in INPUTS}


def layout(config: DitConfig) -> dict[str, Shape]:
    """Name and shape of every tensor of an estimator of these sizes, in upstream's order."""
    return dict(_tensors(config))


def _tensors(config: DitConfig) -> Tensors:
    width, attention = config.width, config.heads * config.head_dim
    yield from _layer("time_embed.time_mlp.0", width, config.frequencies)
    yield from _layer("time_embed.time_mlp.2", width, width)
    yield from _layer("input_embed.proj", width, 3 * config.mel + config.speaker)
    for name in POSITIONS:
        yield from _layer(name, width, width // config.groups, config.kernel)
    yield ROTARY, (config.head_dim // 2,)
    for number in range(config.depth):
        block = f"{BLOCKS}{number}"
        yield from _layer(f"{block}.attn_norm.linear", BLOCK_MODULATIONS * width, width)
        for part in ("to_q", "to_k", "to_v"):
            yield from _layer(f"{block}.attn.{part}", attention, width)
        yield from _layer(f"{block}.attn.to_out.0", width, attention)
        yield from _layer(f"{block}.ff.ff.0.0", config.inner, width)
        yield from _layer(f"{block}.ff.ff.2", width, config.inner)
    yield from _layer("norm_out.linear", OUT_MODULATIONS * width, width)
    yield from _layer("proj_out", config.mel, width)


def _layer(name: str, *weight: int) -> Tensors:
    """A linear layer or a convolution, with a bias a row."""
    yield f"{name}.weight", weight
    yield f"{name}.bias", weight[:1]
