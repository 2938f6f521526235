"""The sizes of CosyVoice2's vocoder, HiFTNet (arXiv:2309.09493), and of its predictor of pitch; no torch.

What the weights do not tell stands in the release's `cosyvoice2.yaml`, and here: that file names classes to be built,
and nothing of a checkpoint is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

UPSAMPLE_RATES, UPSAMPLE_KERNELS = (8, 5, 3), (16, 11, 7)
RESBLOCK_KERNELS, SOURCE_KERNELS, DILATIONS = (3, 7, 11), (7, 7, 11), (1, 3, 5)
HARMONICS = 9
N_FFT, ISTFT_HOP = 16, 4
INNER_SLOPE = 0.1
"""Of the LeakyRelu before each upsampling."""

SAMPLE_RATE = 24000
LARGEST_MAGNITUDE = 100.0
"""What upstream cuts magnitudes at."""

EDGE_KERNEL = 7
"""Of the convolutions before the first stage and behind the last; upstream's `HiFTGenerator` has it in no config."""

PITCH_LAYERS, PITCH_KERNEL = 5, 3
"""Of the predictor of pitch; upstream's `ConvRNNF0Predictor` has them in no config."""

BINS = N_FFT // 2 + 1
COLUMNS = prod(UPSAMPLE_RATES)
"""Spectrogram columns of a mel frame, 120."""

HOP = COLUMNS * ISTFT_HOP
"""Samples of a mel frame, 480."""

PITCH_FIELD = PITCH_LAYERS * (PITCH_KERNEL // 2)
"""Frames on each side that a pitch depends on."""

CACHE_FRAMES = 8
"""Mel frames that upstream decodes a second time when a chunk goes on from the one before (`mel_cache_len`)."""

MEL_FLOOR = -11.512925
"""The logarithm of 1e-5, below which upstream's mel spectrogram is cut: silence."""

LONGEST_AXIS = 8191
"""Steps of the longest axis: the NPU encodes it in 13 bits (reference, Kokoro generator)."""

MOST_FRAMES = (LONGEST_AXIS - 1) // COLUMNS
"""Of a bucket, 68."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class HiftConfig:
    """The sizes that weights tell.

    Attributes:
        mels: bands of the mel spectrogram.
        channels: behind the first convolution; each stage has half of what it takes.
        pitch_channels: of the predictor of pitch.
    """

    mels: int
    channels: int
    pitch_channels: int

    def stage_channels(self, stage: int) -> int:
        """Channels behind the upsampling of `stage`, 0 the first."""
        return self.channels >> (stage + 1)


TRUE_CONFIG = HiftConfig(mels=80, channels=512, pitch_channels=512)
"""The published sizes: 20.8 million parameters, 3.3 million of them the predictor's."""


def source_strides() -> tuple[int, ...]:
    """Columns of the source's spectrogram that make one of each stage: 15, 3, 1."""
    return tuple(prod(UPSAMPLE_RATES[stage + 1 :]) for stage in range(len(UPSAMPLE_RATES)))


def receptive_frames() -> int:
    """Mel frames on each side that a sample depends on.

    Of a stage of rate r, counted in its columns: the widest residual block, then its upsampling.
    """
    reach = max(RESBLOCK_KERNELS) // 2 * sum(dilation + 1 for dilation in DILATIONS)
    columns = EDGE_KERNEL // 2 + N_FFT // (2 * ISTFT_HOP)
    for rate, kernel in zip(reversed(UPSAMPLE_RATES), reversed(UPSAMPLE_KERNELS), strict=True):
        columns = -(-(columns + reach + kernel // 2) // rate)
    return columns + EDGE_KERNEL // 2


def layout(config: HiftConfig) -> dict[str, Shape]:
    """The tensors of a `hift.pt` by name, weight norm folded: the vocoder, its source and its predictor of pitch."""
    shapes: dict[str, Shape] = {}

    def layer(name: str, *weight: int, outs: int | None = None) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = weight, (outs or weight[0],)

    def block(name: str, channels: int, kernel: int) -> None:
        for step in range(len(DILATIONS)):
            for half in (1, 2):
                layer(f"{name}.convs{half}.{step}", channels, channels, kernel)
                shapes[f"{name}.activations{half}.{step}.alpha"] = (channels,)

    layer("m_source.l_linear", 1, HARMONICS)
    layer("conv_pre", config.channels, config.mels, EDGE_KERNEL)
    for stage, (stride, kernel) in enumerate(zip(source_strides(), UPSAMPLE_KERNELS, strict=True)):
        channels = config.stage_channels(stage)
        layer(f"ups.{stage}", 2 * channels, channels, kernel, outs=channels)
        layer(f"source_downs.{stage}", channels, 2 * BINS, 1 if stride == 1 else 2 * stride)
        block(f"source_resblocks.{stage}", channels, SOURCE_KERNELS[stage])
        for place, width in enumerate(RESBLOCK_KERNELS):
            block(f"resblocks.{stage * len(RESBLOCK_KERNELS) + place}", channels, width)
    layer("conv_post", 2 * BINS, config.stage_channels(len(UPSAMPLE_RATES) - 1), EDGE_KERNEL)
    for place in range(PITCH_LAYERS):
        ins = config.pitch_channels if place else config.mels
        layer(f"f0_predictor.condnet.{2 * place}", config.pitch_channels, ins, PITCH_KERNEL)
    layer("f0_predictor.classifier", 1, config.pitch_channels)
    return shapes
