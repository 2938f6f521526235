"""Sizes of Qwen3 speech decoders that are small enough to test with."""

from __future__ import annotations

from dataclasses import replace

from models.qwen3.config import TRUE_CONFIG

REDUCED = replace(
    TRUE_CONFIG,
    codebook_dim=64,
    codebook_size=32,
    latent_dim=80,
    hidden_size=56,
    intermediate_size=112,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=32,
    decoder_dim=96,
)
"""The published decoder with few layers and channels: its rates, its window and its 16 codebooks.

No two widths are alike but for codebook_dim and the heads' (2 of 32): a layer that takes one for another fails.
"""

SIMULATED = replace(
    REDUCED,
    codebook_dim=96,
    latent_dim=160,
    hidden_size=80,
    decoder_dim=128,
    upsample_rates=(8, 12, 5),
)
"""One whose widths are multiples of 16 and whose cache is rows of 16 numbers, a multiple of 8 of them, as the published
ones are: the compiler treats it alike. It has the published number of samples a code, in three blocks: tracing and
compiling take time for each of its layers."""
