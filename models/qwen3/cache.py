"""What a streaming step of Qwen3's speech decoder hands to the next: one flat float32 cache, and its layout.

    keys, values    of the last 71 codes, for each layer; keys before their rotation
    conv tails      the last inputs of each convolution up to the first wave block's end, as many as it sees
    wave            the last frames that the other wave blocks start from: what they keep besides follows from those
    valid           a row of ones for each of the codes that there was, of zeros in a cache of zeros, a stream's start

Each slice is [slots, channels], a slot's channels side by side; all of it is rows of 16 numbers.

The reference keeps a tail for each convolution of every block instead of `wave`, and kernel // stride inputs of each
transposed convolution where kernel / stride - 1 are seen. That cache has 1,303,424 numbers (family-facts); ours of the
kind `reference` is as large and ends in unused ones, so that a runtime for it allocates the same. `minimal` ends with
the last slice, or a few rows behind it. Neither depends on how many codes a step takes: any step continues any other.
"""

from __future__ import annotations

from math import gcd, prod

from contracts.contract import Cache, CacheSlice
from models.qwen3.config import DILATIONS, PRE_CONV_KERNEL, SEVEN, DecoderConfig

REFERENCE, MINIMAL = "reference", "minimal"
KINDS = (REFERENCE, MINIMAL)

VALID, WAVE, SPARE = "valid", "wave", "spare"
LAYERS = "layers."

COPIED = 8
"""Channels, slots or rows that the compiler moves together on the NPU; any other number of them moves on the CPU, or as
many times the memory (measured, 2.3.2)."""

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
    slices, width = needed_slices(config), row_width(config)
    used = sum(map(prod, slices.values()))
    whole = -(-used // (width * COPIED)) * width * COPIED
    numel = max(whole, reference_numel(config)) if kind == REFERENCE else whole
    if numel > used:
        slices[SPARE] = ((numel - used) // width, width)
    offset, layout = 0, []
    for name, shape in slices.items():
        layout.append(CacheSlice(name, offset, shape))
        offset += prod(shape)
    return Cache(numel, tuple(layout))


def group_width(config: DecoderConfig) -> int:
    """Channels that are turned together: what divides those of every slice, a head's width at most. 64 usually."""
    first = config.block_channels(1)
    return gcd(
        config.head_dim,
        config.attention_width,
        config.codebook_dim,
        config.latent_dim,
        config.decoder_dim,
        first,
    )


def row_width(config: DecoderConfig) -> int:
    """Numbers in a row of the cache: the most, up to a group, that make whole rows of everything, and of all rows a
    multiple of 8, for so many the compiler moves together (20366 rows of 64 cost 78 MB, 81464 of 16 cost 2.5). 16
    usually."""
    group, numel = group_width(config), reference_numel(config)
    whole = [width for width in range(1, group + 1) if group % width == 0 and numel % width == 0]
    return max([width for width in whole if width >= COPIED and numel // width % COPIED == 0] or whole)


def needed_slices(config: DecoderConfig) -> Slices:
    """Name and shape of every slice that is needed, in the order of the cache: slots, then channels."""
    latent, first = config.latent_dim, config.block_channels(1)
    slices: Slices = {}
    for layer in range(config.num_hidden_layers):
        for what in ("keys", "values"):
            slices[f"{LAYERS}{layer}.{what}"] = (config.kv_len, config.attention_width)
    for stage in range(len(config.upsampling_ratios)):
        slices[f"upsample.{stage}"] = (SEVEN - 1, latent)
    slices["decoder.0"] = (SEVEN - 1, latent)
    for unit, dilation in enumerate(DILATIONS):
        slices[f"decoder.1.units.{unit}"] = ((SEVEN - 1) * dilation, first)
    slices[WAVE] = (wave_frames(config), first)
    slices["decoder.1.up"] = (1, config.decoder_dim)
    slices["pre_conv"] = (PRE_CONV_KERNEL - 1, config.codebook_dim)
    slices[VALID] = (valid_rows(config), row_width(config))
    return slices


def wave_frames(config: DecoderConfig) -> int:
    """Frames that are kept: the history, and more until they and the tails before them are a multiple of 8 (26)."""
    return wave_history(config) + -(unit_history() + wave_history(config)) % COPIED


def valid_rows(config: DecoderConfig) -> int:
    """Rows of `valid`, of which the last `kv_len` count: the compiler copies channels in groups of 8."""
    return -(-config.kv_len // COPIED) * COPIED


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
