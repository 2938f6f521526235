"""What a small voice is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

ALPHABET = "_^$ !',.?abcdefghijklmnopqrstuvwxyzæðŋɑɔəɚɛɜɡɪɹʃʊʌʒˈˌː"
"""One phoneme a character: pad, begin and end first, as in Piper's maps, then every phoneme of the gates' sentences."""


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
        resblock_kernels: kernel of each residual block of an upsampling; each has the dilations 1 and 2.
        speakers: more than one adds the input `sid` and an embedding that durations, flow and decoder read.
        noise: whether the latent has noise.
        duration_noise: whether the durations have noise.
        encoder_noise: whether the encoder adds noise of its own, before the seam.
        mask: whether flow and decoder multiply by the frame mask.
        opset: of the default domain, 13 to 19.
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
    speakers: int = 1
    noise: bool = True
    duration_noise: bool = True
    encoder_noise: bool = False
    mask: bool = True
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
