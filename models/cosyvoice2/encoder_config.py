"""Sizes of CosyVoice2's flow encoder, and what a checkpoint holds of it: every tensor and its shape. No torch.

Names are those of `flow.pt`. At the published sizes 37,831,168 numbers stand under `encoder.` (37.8 M, family-facts),
beside the projection, the table of tokens and the layer of the speaker; the host half has the latter two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Shape = tuple[int, ...]
Tensors = Iterator[tuple[str, Shape]]

UPSAMPLING = 2
"""Frames that the encoder makes of a token: 50 a second of 25 (cosyvoice2.yaml, token_mel_ratio)."""

BEHIND = 2
"""Steps that the causal convolution behind the look-ahead takes from the past: it has three taps (upstream,
PreLookaheadLayer)."""

UP_BEHIND = 2 * UPSAMPLING
"""Frames that the convolution behind the upsampling takes from the past (upstream, Upsample1D)."""


@dataclass(frozen=True)
class EncoderConfig:
    """The sizes, all of which the weights tell.

    Attributes:
        tokens: rows of the table of speech tokens.
        width: of the signal, heads * head_dim.
        heads, head_dim: of every attention.
        units: inside the feed-forward layers.
        blocks: in front of the upsampling.
        up_blocks: behind it.
        look_ahead: tokens ahead that the first convolution sees.
        mel: bins of what comes out.
        speaker: numbers of a speaker's embedding.
    """

    tokens: int
    width: int
    heads: int
    units: int
    blocks: int
    up_blocks: int
    look_ahead: int
    mel: int
    speaker: int

    @property
    def head_dim(self) -> int:
        """Numbers of a query, key or value of one head."""
        return self.width // self.heads


TRUE_CONFIG = EncoderConfig(
    tokens=6561, width=512, heads=8, units=2048, blocks=6, up_blocks=4, look_ahead=3, mel=80, speaker=192
)
"""The published model (cosyvoice2.yaml)."""

TABLE, SPEAKER, PROJECTION = "input_embedding", "spk_embed_affine_layer", "encoder_proj"
ENCODER = "encoder."
STACKS = ("encoders", "up_encoders")
"""The blocks in front of the upsampling and behind it."""


def layout(config: EncoderConfig) -> dict[str, Shape]:
    """Name and shape of every tensor of an encoder of these sizes, and of what the host half has."""
    width = config.width
    return dict(
        (
            (f"{TABLE}.weight", (config.tokens, width)),
            *_layer(SPEAKER, (config.mel, config.speaker)),
            *_embedding(f"{ENCODER}embed", width),
            *_layer(f"{ENCODER}pre_lookahead_layer.conv1", (width, width, config.look_ahead + 1)),
            *_layer(f"{ENCODER}pre_lookahead_layer.conv2", (width, width, BEHIND + 1)),
            *_blocks(STACKS[0], config.blocks, config),
            *_layer(f"{ENCODER}up_layer.conv", (width, width, UP_BEHIND + 1)),
            *_embedding(f"{ENCODER}up_embed", width),
            *_blocks(STACKS[1], config.up_blocks, config),
            *_norm(f"{ENCODER}after_norm", width),
            *_layer(PROJECTION, (config.mel, width)),
        )
    )


def _layer(name: str, weight: Shape) -> Tensors:
    yield f"{name}.weight", weight
    yield f"{name}.bias", weight[:1]


def _norm(name: str, width: int) -> Tensors:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def _embedding(name: str, width: int) -> Tensors:
    yield from _layer(f"{name}.out.0", (width, width))
    yield from _norm(f"{name}.out.1", width)


def _blocks(stack: str, count: int, config: EncoderConfig) -> Tensors:
    width = config.width
    for number in range(count):
        block = f"{ENCODER}{stack}.{number}"
        attention = f"{block}.self_attn"
        yield f"{attention}.pos_bias_u", (config.heads, config.head_dim)
        yield f"{attention}.pos_bias_v", (config.heads, config.head_dim)
        for part in ("q", "k", "v", "out"):
            yield from _layer(f"{attention}.linear_{part}", (width, width))
        yield f"{attention}.linear_pos.weight", (width, width)
        yield from _layer(f"{block}.feed_forward.w_1", (config.units, width))
        yield from _layer(f"{block}.feed_forward.w_2", (width, config.units))
        yield from _norm(f"{block}.norm_ff", width)
        yield from _norm(f"{block}.norm_mha", width)
