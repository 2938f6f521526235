"""The harmonic source (NSF, arXiv:1904.12088): pitch to an excitation of nine sines and noise.

Kokoro's and CosyVoice2's, which differ in the samples of a frame. Frame i has pitch f_i; each sine's phase is
interpolated linearly between the middles of the frames, `hop` samples apart. With r_i = frac(k f_i / rate), k the
harmonic, and P_i = T + hop (r_0 + ... + r_i), in turns, sample j of frame i has the phase

    P_i + (j + 1/2 - hop / 2) r       r = r_i in the frame's first half, r_(i+1) in its second

(no r before the first middle and behind the last). T, what was turned before the first frame, is 0 in the references;
a stream goes on with it. They add whole utterances of turns in float32, where a phase of 10^5 radians is good to 0.004;
here P is summed in double precision and its whole turns are dropped.

The references also draw a phase for each harmonic, add it to the first sample of k f / rate, and then sample that
between the middle two of every `hop`: the draw never arrives, so it is no input here.
"""

from __future__ import annotations

from math import pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

SAMPLE_RATE = 24000
"""Hz, of all models that have this source."""

SINE, NOISE = 0.1, 0.003
"""Amplitude of a sine, and of the noise beside it where there is a voice. The references' defaults."""

BREATH = SINE / 3
"""Amplitude of the noise where there is no voice."""

VOICED = 10.0
"""Hz; a frame of a lower pitch has no voice."""


class Source(nn.Module):
    """Harmonics and noise, merged by `weight` [1, H] and `bias` [1]; `hop` samples a frame."""

    def __init__(self, weight: NDArray[np.float32], bias: NDArray[np.float32], hop: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(np.array(weight.T)), requires_grad=False)
        self.bias = nn.Parameter(torch.from_numpy(np.array(bias)), requires_grad=False)
        self.hop, self.harmonics = hop, weight.shape[1]

    def forward(self, pitch: Tensor, noise: Tensor) -> Tensor:
        """The excitation.

        Args:
            pitch: [1, N], Hz.
            noise: [1, hop N or more, H], standard normal; what is more is not used.

        Returns:
            [1, hop N].
        """
        return self.from_turns(pitch, noise, turned(pitch, self.harmonics, self.hop))

    def from_turns(self, pitch: Tensor, noise: Tensor, turns: Tensor) -> Tensor:
        """As `forward`, with the phases at the middles of the frames: turns [1, N, H]."""
        voiced = (pitch > VOICED).to(pitch.dtype).reshape(1, -1, 1, 1)
        sines = SINE * torch.sin(2 * pi * phases(pitch, self.harmonics, self.hop, turns))
        frames = pitch.shape[1]
        drawn = noise[:, : frames * self.hop].reshape(1, frames, self.hop, self.harmonics)
        mixed = voiced * sines + (voiced * NOISE + (1 - voiced) * BREATH) * drawn
        return torch.tanh(mixed @ self.weight + self.bias).reshape(1, -1)


def turned(pitch: Tensor, harmonics: int, hop: int, before: Tensor | None = None) -> Tensor:
    """Pitch [1, N] in Hz -> phases at the frames' middles in turns, less whole ones [1, N, harmonics].

    Args:
        pitch: of the frames.
        harmonics: how many sines there are.
        hop: samples a frame.
        before: what was turned before the first frame [1, harmonics]; None: nothing.
    """
    turns = hop * _rates(pitch, harmonics).cumsum(1)
    if before is not None:
        turns = turns + before.double().unsqueeze(1)
    return (turns - torch.floor(turns)).to(pitch.dtype)


def phases(pitch: Tensor, harmonics: int, hop: int, middles: Tensor | None = None) -> Tensor:
    """Pitch [1, N] in Hz -> phases in turns [1, N, hop, harmonics], less whole turns at each frame's middle.

    `middles` [1, N, harmonics] are those at the middles; None: `turned` from nothing.
    """
    if middles is None:
        middles = turned(pitch, harmonics, hop)
    rates = _rates(pitch, harmonics)
    between = rates[:, 1:].to(pitch.dtype)
    before, behind = functional.pad(between, (0, 0, 1, 0)), functional.pad(between, (0, 0, 0, 1))
    offsets = torch.arange(hop, dtype=pitch.dtype) + 0.5 - hop / 2
    slopes = torch.where(offsets[:, None] < 0, before.unsqueeze(2), behind.unsqueeze(2))
    return middles.unsqueeze(2) + offsets[:, None] * slopes


def _rates(pitch: Tensor, harmonics: int) -> Tensor:
    """What each sine turns in a sample, less whole turns, in double precision [1, N, harmonics]."""
    multiples = pitch.double().unsqueeze(-1) * torch.arange(1, harmonics + 1) / SAMPLE_RATE
    return multiples - torch.floor(multiples)
