"""The harmonic source (NSF, arXiv:1904.12088): pitch to an excitation of nine sines and noise.

Frame i has pitch f_i; each sine's phase is interpolated linearly between the middles of the frames, `hop` samples
apart. With r_i = frac(k f_i / rate), k the harmonic, and P_i = hop (r_0 + ... + r_i), in turns, sample j of frame i
has the phase

    P_i + (j + 1/2 - hop / 2) r       r = r_i in the frame's first half, r_(i+1) in its second

(no r before the first middle and behind the last). The reference adds whole utterances of turns in float32, where a
phase of 10^5 radians is good to 0.004; here P is summed in double precision and its whole turns are dropped.

The reference also draws a phase for each harmonic, adds it to the first sample of k f / rate, and then samples that
between the 150th and 151st of every 300: the draw never arrives, so it is no input here.
"""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.config import SAMPLE_RATE
from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, Linear

SINE, NOISE = 0.1, 0.003
"""Amplitude of a sine, and of the noise beside it where there is a voice. The reference's defaults."""

BREATH = SINE / 3
"""Amplitude of the noise where there is no voice."""

VOICED = 10.0
"""Hz; a frame of a lower pitch has no voice."""


class Source(nn.Module):
    """`weights` under `decoder.module.generator.m_source`; `hop` samples a frame."""

    def __init__(self, weights: Arrays, hop: int) -> None:
        super().__init__()
        self.merge = Linear(under(weights, "l_linear"))
        self.hop, self.harmonics = hop, self.merge.ins

    def forward(self, pitch: Tensor, noise: Tensor) -> Tensor:
        """The excitation.

        Args:
            pitch: [1, N], Hz.
            noise: [1, hop N or more, H], standard normal; what is more is not used.

        Returns:
            [1, hop N].
        """
        voiced = (pitch > VOICED).to(pitch.dtype).reshape(1, -1, 1, 1)
        sines = SINE * torch.sin(2 * pi * phases(pitch, self.harmonics, self.hop))
        frames = pitch.shape[1]
        drawn = noise[:, : frames * self.hop].reshape(1, frames, self.hop, self.harmonics)
        mixed = voiced * sines + (voiced * NOISE + (1 - voiced) * BREATH) * drawn
        return torch.tanh(self.merge(mixed)).reshape(1, -1)


def phases(pitch: Tensor, harmonics: int, hop: int) -> Tensor:
    """Pitch [1, N] in Hz -> phases in turns [1, N, hop, harmonics], less whole turns at each frame's middle."""
    multiples = pitch.double().unsqueeze(-1) * torch.arange(1, harmonics + 1) / SAMPLE_RATE
    rates = multiples - torch.floor(multiples)
    turns = hop * rates.cumsum(1)
    middles = (turns - torch.floor(turns)).to(pitch.dtype)
    between = rates[:, 1:].to(pitch.dtype)
    before, behind = functional.pad(between, (0, 0, 1, 0)), functional.pad(between, (0, 0, 0, 1))
    offsets = torch.arange(hop, dtype=pitch.dtype) + 0.5 - hop / 2
    slopes = torch.where(offsets[:, None] < 0, before.unsqueeze(2), behind.unsqueeze(2))
    return middles.unsqueeze(2) + offsets[:, None] * slopes
