"""What a streaming step of Qwen3's speech decoder hands to the next: one flat float32 cache, and its layout.

    keys, values    of the last 71 codes, for each layer; keys before their rotation
    conv tails      the last inputs of each convolution up to the first wave block's end, as many as it sees
    wave            the last frames that the other wave blocks start from: what they keep besides follows from those
    valid           1 for each of the 71 codes that there was, 0 in a cache of zeros, which is the start of a stream

The reference keeps a tail for each convolution of every block instead of `wave`, and kernel // stride inputs of each
transposed convolution where kernel / stride - 1 are seen. That cache has 1,303,424 numbers (family-facts); ours of the
kind `reference` is as large and ends in unused ones, so that a runtime for it allocates the same. `minimal` ends where
the last slice does. Neither depends on how many codes a step takes: any step continues any other.
"""

from __future__ import annotations

from math import prod

from contracts.contract import Cache, CacheSlice
from models.qwen3.config import DILATIONS, PRE_CONV_KERNEL, SEVEN, DecoderConfig

REFERENCE, MINIMAL = "reference", "minimal"
KINDS = (REFERENCE, MINIMAL)

VALID, WAVE, SPARE = "valid", "wave", "spare"

Slices = dict[str, tuple[int, ...]]


def unit_history() -> int:
    """Earlier frames that a wave block's residual units see: 78, (kernel - 1) (1 + 3 + 9)."""
    return (SEVEN - 1) * sum(DILATIONS)


def wave_history(config: DecoderConfig) -> int:
    """Earlier frames, at the end of the first wave block, that a sample depends on: 23 for the published decoder.

    A block whose outputs are needed for n frames before the present one needs ceil((n + 78) / rate) + 1 of its inputs:
    its units see 78, and a transposed convolution of twice its stride sees one input before its own.
    """
    frames = SEVEN - 1  # of the last convolution
    for rate in reversed(config.upsample_rates[1:]):
        frames = -(-(frames + unit_history()) // rate) + 1
    return frames


def cache_layout(config: DecoderConfig, kind: str) -> Cache:
    """Where everything lies in the cache of a step, in elements.

    Args:
        config: the decoder's sizes.
        kind: one of `KINDS`.
    """
    slices = needed_slices(config)
    numel = sum(map(prod, slices.values()))
    if kind == REFERENCE:
        spare = reference_numel(config) - numel
        if spare > 0:
            slices[SPARE], numel = (spare,), numel + spare
    offset, layout = 0, []
    for name, shape in slices.items():
        layout.append(CacheSlice(name, offset, shape))
        offset += prod(shape)
    return Cache(numel, tuple(layout))


def needed_slices(config: DecoderConfig) -> Slices:
    """Name and shape of every slice that is needed, in the order of the cache."""
    width, first = config.latent_dim, config.block_channels(1)
    kv = (config.num_attention_heads, config.kv_len, config.head_dim)
    slices: Slices = {}
    for layer in range(config.num_hidden_layers):
        slices[f"layers.{layer}.keys"] = slices[f"layers.{layer}.values"] = kv
    slices["pre_conv"] = (config.codebook_dim, PRE_CONV_KERNEL - 1)
    for stage in range(len(config.upsampling_ratios)):
        slices[f"upsample.{stage}"] = (width, SEVEN - 1)
    slices["decoder.0"] = (width, SEVEN - 1)
    slices["decoder.1.up"] = (config.decoder_dim, 1)
    for unit, dilation in enumerate(DILATIONS):
        slices[f"decoder.1.units.{unit}"] = (first, (SEVEN - 1) * dilation)
    slices[WAVE] = (first, wave_history(config))
    slices[VALID] = (config.kv_len,)
    return slices


def reference_numel(config: DecoderConfig) -> int:
    """Numbers in the reference's cache: 1,303,424 for the published decoder, as family-facts accounts for them."""
    blocks = range(len(config.upsample_rates))
    keys_values = 2 * config.num_hidden_layers * config.attention_width * config.kv_len
    tails = (PRE_CONV_KERNEL - 1) * config.codebook_dim
    tails += (SEVEN - 1) * config.latent_dim * (len(config.upsampling_ratios) + 1)
    tails += sum(unit_history() * config.block_channels(number + 1) for number in blocks)
    tails += (SEVEN - 1) * config.block_channels(len(blocks))
    upsampled = len(config.upsampling_ratios) * config.latent_dim  # kernel // stride: 1
    upsampled += sum(2 * config.block_channels(number) for number in blocks)
    return keys_values + tails + upsampled
