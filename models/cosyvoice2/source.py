"""What CosyVoice2's vocoder is excited with: pitch to the harmonic source and its STFT; runs on the host.

Upstream decodes a stream in windows that overlap, each with a source of its own whose beginning it replaces by what the
window before had there. There every window's phases start at zero, so that they jump where the known samples end; with
`before` they go on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.cosyvoice2.hift_config import HOP, ISTFT_HOP, N_FFT
from models.harmonic_source import Source, turned
from models.stft import Stft

PREFIX = "m_source.l_linear."
"""Where its two tensors stand in a `hift.pt`."""


class Excitation(nn.Module):
    """`weights` are those of a whole `hift.pt`."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        super().__init__()
        self.source = Source(weights[f"{PREFIX}weight"], weights[f"{PREFIX}bias"], HOP)
        self.stft = Stft(N_FFT, ISTFT_HOP)

    def forward(self, f0: Tensor, noise: Tensor, before: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The source of a window.

        Args:
            f0: [1, W], Hz.
            noise: [1, 480 W or more, 9], standard normal; what is more is not used.
            before: [1, 9], what each sine had turned before the window, in turns; zeros at a stream's start.
            known: [1, K], the window's first samples of the source, where a window before had them; K may be 0. That
                window's last half frame is better left out: no pitch behind it told how its phases go on.

        Returns:
            har [1, 18, 120 W + 1], real and imaginary parts; the source's samples [1, 480 W]; and what each sine has
            turned at each frame's middle [1, W, 9]: a window that starts with the frame behind frame i goes on from
            those of i.
        """
        turns = turned(f0, self.source.harmonics, HOP, before)
        own = self.source.from_turns(f0, noise, turns)
        samples = torch.cat([known, own[:, known.shape[1] :]], dim=1)
        return self.stft.spectrum(samples), samples, turns
