"""What a Qwen3 speech tokenizer's checkpoint holds of its decoder: every tensor and its shape, from a config's sizes.

Names are the file's: `decoder.` and the path in the reference's module (`Qwen3TTSTokenizerV2Decoder`). The published
file has 271 of them, 114,323,137 numbers, beside the encoder's. Decoding reads all but the two `input_proj` of the
quantizer, which only an encoder would.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.qwen3.config import DecoderConfig

PREFIX = "decoder."
"""Of the decoder's tensors; others are the encoder's."""

Shape = tuple[int, ...]
Tensors = Iterator[tuple[str, Shape]]

_PRE_CONV_KERNEL = 3
_KERNEL = 7
"""Of every other convolution but the pointwise ones."""

_WIDER = 4
"""What a ConvNeXt block's pointwise layers widen by."""

_RESIDUAL_UNITS = 3
"""Of a block of the wave decoder, behind its Snake and its transposed convolution."""

_KERNEL_STRIDES = 2
"""Kernel of a wave block's transposed convolution, in strides; an upsampling block's has one. As all above, written out
in the reference's module."""


def layout(config: DecoderConfig) -> dict[str, Shape]:
    """Name and shape of every tensor of a decoder of these sizes, in the reference's order of computing."""
    parts = (
        *_quantizer("quantizer.rvq_first", config.n_q_semantic, config),
        *_quantizer("quantizer.rvq_rest", config.n_q_acoustic, config),
        *_layer("pre_conv.conv", (config.latent_dim, config.codebook_dim, _PRE_CONV_KERNEL)),
        *_transformer(config),
        *_upsampling(config),
        *_wave_decoder(config),
    )
    return {PREFIX + name: shape for name, shape in parts}


def _layer(name: str, weight: Shape, biases: int | None = None) -> Tensors:
    """A linear layer or a convolution; it has as many biases as rows where nothing else is said."""
    yield f"{name}.weight", weight
    yield f"{name}.bias", (weight[0] if biases is None else biases,)


def _quantizer(name: str, codebooks: int, config: DecoderConfig) -> Tensors:
    yield f"{name}.input_proj.weight", (config.rvq_dim, config.codebook_dim, 1)
    yield f"{name}.output_proj.weight", (config.codebook_dim, config.rvq_dim, 1)
    for number in range(codebooks):
        codebook = f"{name}.vq.layers.{number}._codebook"
        yield f"{codebook}.cluster_usage", (config.codebook_size,)
        yield f"{codebook}.embedding_sum", (config.codebook_size, config.rvq_dim)


def _transformer(config: DecoderConfig) -> Tensors:
    name, width, attention = "pre_transformer", config.hidden_size, config.attention_width
    keys = config.num_key_value_heads * config.head_dim
    yield from _layer(f"{name}.input_proj", (width, config.latent_dim))
    for number in range(config.num_hidden_layers):
        layer = f"{name}.layers.{number}"
        for part, rows in (("q", attention), ("k", keys), ("v", keys)):
            yield f"{layer}.self_attn.{part}_proj.weight", (rows, width)
        yield f"{layer}.self_attn.o_proj.weight", (width, attention)
        for part in ("gate", "up"):
            yield f"{layer}.mlp.{part}_proj.weight", (config.intermediate_size, width)
        yield f"{layer}.mlp.down_proj.weight", (width, config.intermediate_size)
        for part in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            yield f"{layer}.{part}", (width,)
        for part in ("self_attn_layer_scale.scale", "mlp_layer_scale.scale"):
            yield f"{layer}.{part}", (width,)
    yield f"{name}.norm.weight", (width,)
    yield from _layer(f"{name}.output_proj", (config.latent_dim, width))


def _upsampling(config: DecoderConfig) -> Tensors:
    width = config.latent_dim
    for number, ratio in enumerate(config.upsampling_ratios):
        yield from _layer(f"upsample.{number}.0.conv", (width, width, ratio))
        block = f"upsample.{number}.1"
        yield from _layer(f"{block}.dwconv.conv", (width, 1, _KERNEL))
        yield from _layer(f"{block}.norm", (width,))
        yield from _layer(f"{block}.pwconv1", (_WIDER * width, width))
        yield from _layer(f"{block}.pwconv2", (width, _WIDER * width))
        yield f"{block}.gamma", (width,)


def _wave_decoder(config: DecoderConfig) -> Tensors:
    yield from _layer("decoder.0.conv", (config.decoder_dim, config.latent_dim, _KERNEL))
    for number, rate in enumerate(config.upsample_rates):
        block = f"decoder.{number + 1}.block"
        given, made = config.block_channels(number), config.block_channels(number + 1)
        yield from _snake(f"{block}.0", given)
        yield from _layer(f"{block}.1.conv", (given, made, _KERNEL_STRIDES * rate), biases=made)
        for unit in range(_RESIDUAL_UNITS):
            residual = f"{block}.{unit + 2}"
            yield from _snake(f"{residual}.act1", made)
            yield from _layer(f"{residual}.conv1.conv", (made, made, _KERNEL))
            yield from _snake(f"{residual}.act2", made)
            yield from _layer(f"{residual}.conv2.conv", (made, made, 1))
    behind = len(config.upsample_rates) + 1
    last = config.block_channels(len(config.upsample_rates))
    yield from _snake(f"decoder.{behind}", last)
    yield from _layer(f"decoder.{behind + 1}.conv", (1, last, _KERNEL))


def _snake(name: str, channels: int) -> Tensors:
    yield f"{name}.alpha", (channels,)
    yield f"{name}.beta", (channels,)
