"""The sizes of an Inflect v2 model, as its `config.json` states them; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class InflectConfig:
    """A whole model; the names are those of `config.json`, under `model`, but for the last two.

    Attributes:
        inter_channels: of the latent, the prior's statistics and the flow; even, for the flow splits them.
        hidden_channels: inside the text encoder and the flow; a multiple of `n_heads`.
        filter_channels: inside the text encoder's feed-forward layers.
        n_heads: of the text encoder's attention.
        n_layers: of the text encoder.
        kernel_size: of its feed-forward layers' convolutions; odd.
        upsample_rates: of the wave generator's transposed convolutions; their product is the hop.
        upsample_kernel_sizes: one for each rate, longer by an even number.
        upsample_initial_channel: in front of the first of them; each halves the channels.
        resblock_kernel_sizes: one for each residual block of a stage; odd.
        resblock_dilation_sizes: of each such block, one for each of its steps.
        sample_rate: of the samples, in Hz (`data.sampling_rate`).
        n_vocab: rows of the symbol table; in no config, but the length of the release's list of symbols.
    """

    inter_channels: int
    hidden_channels: int
    filter_channels: int
    upsample_initial_channel: int
    n_heads: int = 2
    n_layers: int = 3
    kernel_size: int = 3
    upsample_rates: tuple[int, ...] = (8, 8, 2, 2)
    upsample_kernel_sizes: tuple[int, ...] = (16, 16, 4, 4)
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    sample_rate: int = 24_000
    n_vocab: int = 178

    @property
    def hop(self) -> int:
        """Samples a latent frame: the product of the upsampling rates, 256 in both releases."""
        return prod(self.upsample_rates)

    @property
    def half_channels(self) -> int:
        """Channels that a coupling leaves as they are, and that it moves."""
        return self.inter_channels // 2

    @property
    def head_channels(self) -> int:
        """Channels of a head of the attention."""
        return self.hidden_channels // self.n_heads

    def stage_channels(self, stage: int) -> int:
        """Channels in front of the generator's stage `stage`, from 0; behind the last for their number."""
        return int(self.upsample_initial_channel // 2**stage)


ATTENTION_WINDOW = 4
"""Tokens on each side that the attention has an embedding for; of VITS's encoder, in no config."""

DURATION_CHANNELS, DURATION_KERNEL = 256, 3
"""Of the duration predictor's convolutions; written out in the release's model (`DurationPredictor`), in no config."""

FLOW_STEPS, FLOW_LAYERS, FLOW_KERNEL = 4, 4, 5
"""Couplings of the flow, convolutions of each, all of dilation 1, and their kernel (`ResidualCouplingBlock`)."""

OUTER_KERNEL = 7
"""Of the generator's first and last convolution; likewise (`Generator`)."""

MICRO = InflectConfig(inter_channels=192, hidden_channels=96, filter_channels=768, upsample_initial_channel=320)
"""Inflect-Micro-v2, as its official `config.json` has it: 9,356,513 parameters, weight norm not folded."""

NANO = InflectConfig(inter_channels=128, hidden_channels=72, filter_channels=384, upsample_initial_channel=192)
"""Inflect-Nano-v2, likewise: 3,966,721 parameters."""
