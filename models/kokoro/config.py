"""The sizes of a Kokoro model, as its `config.json` states them; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class AlbertConfig:
    """The text's language model (`plbert`): ALBERT, one layer's weights shared by all layers."""

    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    num_hidden_layers: int


@dataclass(frozen=True)
class GeneratorConfig:
    """The iSTFTNet generator (`istftnet`)."""

    upsample_rates: tuple[int, ...]
    upsample_kernel_sizes: tuple[int, ...]
    upsample_initial_channel: int
    resblock_kernel_sizes: tuple[int, ...]
    resblock_dilation_sizes: tuple[tuple[int, ...], ...]
    gen_istft_n_fft: int
    gen_istft_hop_size: int

    @property
    def columns_per_frame(self) -> int:
        """Spectrogram columns a latent frame: the product of the upsampling rates."""
        return prod(self.upsample_rates)

    @property
    def hop(self) -> int:
        """Samples a latent frame."""
        return self.columns_per_frame * self.gen_istft_hop_size

    @property
    def bins(self) -> int:
        """Frequency bins of the STFT."""
        return self.gen_istft_n_fft // 2 + 1


@dataclass(frozen=True)
class KokoroConfig:
    """A whole model; the names are those of `config.json`, but for the last two.

    Attributes:
        decoder_channels: of the blocks before the generator; written out in the reference's decoder, in no config.
        asr_channels: of the text's features beside them (`asr_res`); as above.
    """

    n_token: int
    hidden_dim: int
    style_dim: int
    n_layer: int
    max_dur: int
    text_encoder_kernel_size: int
    plbert: AlbertConfig
    istftnet: GeneratorConfig
    decoder_channels: int = 1024
    asr_channels: int = 64


def receptive_frames(config: GeneratorConfig) -> int:
    """Latent frames on each side that a frame's columns depend on, the norms' statistics aside. 9 for Kokoro-82M.

    From the end: the last convolution and the widest residual block at the fine rate, a transposed convolution, whose
    column sees its own input and one neighbour, and so on up to the frames. Harmonics pass through one more block, and
    so come from 2 frames further; what those add is 170 dB down (measured, double precision, context 9).
    """
    widest = max(
        sum((kernel - 1) * dilation // 2 + (kernel - 1) // 2 for dilation in dilations)
        for kernel, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
    )
    reach = LAST_KERNEL // 2
    for rate in reversed(config.upsample_rates):
        reach = -(-(reach + widest) // rate) + 1
    return reach


LAST_KERNEL = 7
"""Of the convolution that gives the spectrogram; written out in the reference, in no config."""

SAMPLE_RATE = 24000
"""Samples per second; written out in the reference's source module (`kokoro.istftnet.Generator`), in no config."""

HARMONIC_TONES = 9
"""The fundamental and its overtones in the harmonic source; written out in the reference, in no config."""

KOKORO_82M = KokoroConfig(
    n_token=178,
    hidden_dim=512,
    style_dim=128,
    n_layer=3,
    max_dur=50,
    text_encoder_kernel_size=5,
    plbert=AlbertConfig(
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=2048,
        max_position_embeddings=512,
        num_hidden_layers=12,
    ),
    istftnet=GeneratorConfig(
        upsample_rates=(10, 6),
        upsample_kernel_sizes=(20, 12),
        upsample_initial_channel=512,
        resblock_kernel_sizes=(3, 7, 11),
        resblock_dilation_sizes=((1, 3, 5), (1, 3, 5), (1, 3, 5)),
        gen_istft_n_fft=20,
        gen_istft_hop_size=5,
    ),
)
"""Kokoro-82M v1.0, as its official `config.json` has it."""
