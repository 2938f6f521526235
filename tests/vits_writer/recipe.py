"""What a small voice is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

ALPHABET = "_^$ !',.?abcdefghijklmnopqrstuvwxyzæðŋɑɔəɚɛɜɡɪɹʃʊʌʒˈˌː"
"""One phoneme a character: pad, begin and end first, as in Piper's maps, then every phoneme of the gates' sentences."""

DYNAMO_OPSET = 18
"""What torch's newer exporter writes at least, whatever opset is asked for."""


@dataclass(frozen=True)
class Recipe:
    """Sizes and switches of a voice; the defaults are a plain voice of one speaker that runs in milliseconds.

    Attributes:
        latent: channels of the latent; even, for the flow splits them.
        hidden: channels inside the flow and the encoder.
        flows: couplings of the flow.
        flow_layers: convolutions of each coupling.
        strides: of the upsampling; their product is the hop. None at all: a graph without transposed convolutions.
        decoder: channels after `conv_pre`; halved by every upsampling.
        resblock_kernels: kernel of each residual block of an upsampling.
        resblock_dilations: dilations of each residual block; empty: each has 1 and 2.
        resblock: "2" adds each convolution's output to its input; "1" (Piper's high quality) has a second convolution,
            of dilation 1, behind each.
        speakers: more than one adds the input `sid` and an embedding that durations, flow and decoder read.
        languages: more than one adds the input `lid` and an embedding that is added to the speaker's.
        prosody: adds the input `prosody_features`, int64 [batch, phonemes, 3], which the durations read.
        noise: whether the latent has noise.
        duration_noise: whether the durations have noise.
        encoder_noise: whether the encoder adds noise of its own, before the seam.
        mask: whether flow and decoder multiply by the frame mask.
        attention: VITS's text encoder, of relative attention, layer norms and feed-forward convolutions, in place of
            one convolution.
        layers: attention layers.
        heads: of each attention layer; they divide `hidden`.
        duration_flows: VITS's duration predictors in place of one convolution: the stochastic one (spline flows on
            noise), or without `duration_noise` the deterministic one.
        couplings: of the stochastic predictor; inference skips one, so 1 is none. VITS has 4.
        faithful: what else the plain voice leaves out: kernels of 5 in the flow, one conditioning convolution a
            coupling with a slice of it for each layer, and 0.01 as the last LeakyRelu's slope.
        durations_output: a second output `durations`, float [batch, phonemes], before they are rounded up.
        exporter: "legacy" is torch's tracing exporter, as Piper's releases were made; "dynamo" the newer one: other
            names, opset 18 at least, LayerNormalization, a batch of one, sizes as values and not as shapes.
        metadata: what sherpa-onnx's script adds to the model for its runtime.
        opset: of the default domain, 13 to 19. From 17 on both exporters write LayerNormalization.
        seed: of the weights.
        sample_rate: what the JSON states.
    """

    latent: int = 8
    hidden: int = 8
    flows: int = 2
    flow_layers: int = 2
    strides: tuple[int, ...] = (4, 2, 2)
    decoder: int = 16
    resblock_kernels: tuple[int, ...] = (3, 5)
    resblock_dilations: tuple[tuple[int, ...], ...] = ()
    resblock: Literal["1", "2"] = "2"
    speakers: int = 1
    languages: int = 1
    prosody: bool = False
    noise: bool = True
    duration_noise: bool = True
    encoder_noise: bool = False
    mask: bool = True
    attention: bool = False
    layers: int = 2
    heads: int = 2
    duration_flows: bool = False
    couplings: int = 2
    faithful: bool = False
    durations_output: bool = False
    exporter: Literal["legacy", "dynamo"] = "legacy"
    metadata: bool = False
    opset: int = 15
    seed: int = 0
    sample_rate: int = 16000

    @property
    def symbols(self) -> int:
        """Rows of the phoneme embedding."""
        return len(ALPHABET)

    @property
    def hop(self) -> int:
        """Samples a frame."""
        return prod(self.strides)

    @property
    def conditioned(self) -> bool:
        """Whether an embedding (of speaker, language or both) reaches durations, flow and decoder."""
        return self.speakers > 1 or self.languages > 1

    @property
    def model_opset(self) -> int:
        """The opset of the file."""
        return max(self.opset, DYNAMO_OPSET) if self.exporter == "dynamo" else self.opset

    @property
    def dilations(self) -> tuple[tuple[int, ...], ...]:
        """Dilations of each residual block of an upsampling."""
        return self.resblock_dilations or ((1, 2),) * len(self.resblock_kernels)


# Piper's four qualities (piper_train's --quality and the sample rates of its released voices): their latents, strides
# and residual blocks; fewer layers and, but for x_low's hidden channels, fewer channels inside.
MEDIUM = Recipe(
    latent=192,
    hidden=16,
    strides=(8, 8, 4),
    resblock_kernels=(3, 5, 7),
    resblock_dilations=((1, 2), (2, 6), (3, 12)),
    attention=True,
    duration_flows=True,
    faithful=True,
    sample_rate=22050,
)
LOW = replace(MEDIUM, sample_rate=16000)
X_LOW = replace(LOW, latent=96, hidden=96, flow_layers=1)
HIGH = replace(
    MEDIUM,
    strides=(8, 8, 2, 2),
    resblock="1",
    resblock_kernels=(3, 7, 11),
    resblock_dilations=((1, 3, 5),) * 3,
)
QUALITIES = {"x_low": X_LOW, "low": LOW, "medium": MEDIUM, "high": HIGH}
