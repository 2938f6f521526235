"""The sizes of a Qwen3 speech decoder, as the `decoder_config` of its `config.json` states them; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

SAMPLE_RATE = 24_000
"""Of the samples, in Hz: `output_sample_rate` of the published tokenizer."""


PRE_CONV_KERNEL = 3
"""Of the convolution behind the quantizer; in the reference's code, in no config."""

SEVEN = 7
"""Kernel of the depthwise, the first, the residual units' dilated and the last convolution; likewise."""

DILATIONS = (1, 3, 9)
"""Of a wave block's residual units; likewise."""


@dataclass(frozen=True)
class DecoderConfig:
    """What decoding depends on; the names are those of `decoder_config`, but for the last.

    Attributes:
        codebook_dim: width of the RVQ's output; its vectors are half as wide.
        codebook_size: entries of a codebook.
        latent_dim: width before and behind the transformer, and of the upsampling blocks.
        hidden_size: width inside the transformer.
        intermediate_size: width inside its feed-forward layers.
        sliding_window: codes that a code attends to, itself included.
        rope_theta: base of the rotary embedding's wavelengths.
        rms_norm_eps: of the transformer's norms.
        decoder_dim: channels of the wave decoder before its first block; every block halves them.
        upsample_rates: of the wave decoder's blocks.
        upsampling_ratios: of the upsampling blocks before it.
        num_quantizers: codebooks, the semantic ones included: codes a frame.
        n_q_semantic: how many of them are semantic; written out in the reference's decoder.
    """

    codebook_dim: int
    codebook_size: int
    latent_dim: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    sliding_window: int
    rope_theta: float
    rms_norm_eps: float
    decoder_dim: int
    upsample_rates: tuple[int, ...]
    upsampling_ratios: tuple[int, ...]
    num_quantizers: int
    n_q_semantic: int = 1

    @property
    def samples_per_code(self) -> int:
        """Samples a frame of codes: the product of all upsampling factors. 1920 for the published decoder."""
        return prod(self.upsample_rates) * prod(self.upsampling_ratios)

    @property
    def rvq_dim(self) -> int:
        """Width of a codebook's vectors (the reference: `codebook_dim // 2`)."""
        return self.codebook_dim // 2

    @property
    def n_q_acoustic(self) -> int:
        """Codebooks behind the semantic ones."""
        return self.num_quantizers - self.n_q_semantic

    @property
    def kv_len(self) -> int:
        """Earlier codes that a code attends to: what a streaming step keeps of the keys and values."""
        return self.sliding_window - 1

    @property
    def attention_width(self) -> int:
        """Numbers of a code's query, over all heads."""
        return self.num_attention_heads * self.head_dim

    def block_channels(self, block: int) -> int:
        """Channels in front of the wave decoder's block `block`, from 0; behind the last for their number."""
        return int(self.decoder_dim // 2**block)


TRUE_CONFIG = DecoderConfig(
    codebook_dim=512,
    codebook_size=2048,
    latent_dim=1024,
    hidden_size=512,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=16,
    num_key_value_heads=16,
    head_dim=64,
    sliding_window=72,
    rope_theta=10_000.0,
    rms_norm_eps=1e-5,
    decoder_dim=1536,
    upsample_rates=(8, 5, 4, 3),
    upsampling_ratios=(2, 2),
    num_quantizers=16,
)
"""`decoder_config` of `speech_tokenizer/config.json` in the published checkpoints (Qwen3-TTS-12Hz).

The class defaults of the package `qwen-tts` are other sizes (no codebook_dim; hidden 1024, intermediate 3072), and no
published model's.
"""
