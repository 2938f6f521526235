"""Sizes of CosyVoice2's flow estimator, and names and shapes of its weights; no torch.

A checkpoint holds them in `flow.pt` under `decoder.estimator.`; names here are without that. The published one has
71,302,480 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD_DIM = 64
"""Width of a head of the attention (upstream's configuration); weights tell how wide all heads are together."""

KERNEL = 3
"""Of every convolution but those of one tap."""

PARTS = 4
"""The estimator reads so many mels beside each other: the noised one, the encoder's, the speaker's, the prompt's."""

PAIR = 2
"""Rows of a batch: classifier-free guidance runs the estimator with its conditions and without them at once."""

Shape = tuple[int, ...]
Layout = dict[str, Shape]


@dataclass(frozen=True)
class EstimatorConfig:
    """Sizes of the estimator, a U-net of one level.

    Attributes:
        mel: bins of a mel frame.
        channels: of the stream.
        depth: transformer layers behind each residual block.
        mid: blocks between the one that goes down and the one that goes up.
        inner: width of all heads together.
        hidden: width inside a feed-forward.
        time: width of the time's embedding.
    """

    mel: int
    channels: int
    depth: int
    mid: int
    inner: int
    hidden: int
    time: int

    @property
    def given(self) -> int:
        """Channels that the first block reads."""
        return PARTS * self.mel

    @property
    def heads(self) -> int:
        """Of the attention."""
        return self.inner // HEAD_DIM

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks in their order: a residual block each, and `depth` transformer layers."""
        return ("down_blocks.0", *(f"mid_blocks.{number}" for number in range(self.mid)), "up_blocks.0")

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the transformer layers in their order."""
        return tuple(f"{block}.1.{number}" for block in self.blocks for number in range(self.depth))

    def read(self, block: str) -> int:
        """Channels that a block reads: the last one reads what the first one gave, too."""
        return {self.blocks[0]: self.given, self.blocks[-1]: 2 * self.channels}.get(block, self.channels)


TRUE_CONFIG = EstimatorConfig(mel=80, channels=256, depth=4, mid=12, inner=512, hidden=1024, time=1024)
"""Of the published estimator (`cosyvoice2.yaml`)."""


def layout(config: EstimatorConfig) -> Layout:
    """Every tensor of an estimator of these sizes, by name, in the order of computing."""
    made = {**_layer("time_mlp.linear_1", config.time, config.given), **_layer("time_mlp.linear_2", *[config.time] * 2)}
    for block in config.blocks:
        made |= _residual(f"{block}.0", config.read(block), config)
        for number in range(config.depth):
            made |= _transformer(f"{block}.1.{number}", config)
        if block in (config.blocks[0], config.blocks[-1]):
            made |= _layer(f"{block}.2", config.channels, config.channels, KERNEL)
    made |= _normed("final_block", config.channels, config)
    return made | _layer("final_proj", config.mel, config.channels, 1)


def _layer(name: str, outs: int, *inputs: int) -> Layout:
    return {f"{name}.weight": (outs, *inputs), f"{name}.bias": (outs,)}


def _norm(name: str, channels: int) -> Layout:
    return {f"{name}.weight": (channels,), f"{name}.bias": (channels,)}


def _normed(name: str, read: int, config: EstimatorConfig) -> Layout:
    """A convolution and the norm behind it."""
    return {**_layer(f"{name}.block.0", config.channels, read, KERNEL), **_norm(f"{name}.block.2", config.channels)}


def _residual(name: str, read: int, config: EstimatorConfig) -> Layout:
    return {
        **_layer(f"{name}.mlp.1", config.channels, config.time),
        **_normed(f"{name}.block1", read, config),
        **_normed(f"{name}.block2", config.channels, config),
        **_layer(f"{name}.res_conv", config.channels, read, 1),
    }


def _transformer(name: str, config: EstimatorConfig) -> Layout:
    return {
        **_norm(f"{name}.norm1", config.channels),
        **{f"{name}.attn1.to_{part}.weight": (config.inner, config.channels) for part in ("q", "k", "v")},
        **_layer(f"{name}.attn1.to_out.0", config.channels, config.inner),
        **_norm(f"{name}.norm3", config.channels),
        **_layer(f"{name}.ff.net.0.proj", config.hidden, config.channels),
        **_layer(f"{name}.ff.net.2", config.channels, config.hidden),
    }
