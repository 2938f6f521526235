"""The forward STFT as a strided convolution: `torch.stft` with a periodic Hann window, centred, edges reflected.

Phase is the angle of (real, imaginary) by quadrants, as `torch.angle` gives it; ONNX has no Atan2. Where the imaginary
part is 0 and the real one negative it is +pi, whatever the zero's sign: bins 0 and n/2 are real, so this decides there.
"""

from __future__ import annotations

from math import pi

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class Stft(nn.Module):
    """`size` samples a column, even, a column every `hop`."""

    def __init__(self, size: int, hop: int) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.bins = size // 2 + 1
        self.register_buffer("kernel", _kernel(size), persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        """Samples [1, S] -> magnitudes then phases [1, 2 bins, S // hop + 1]."""
        spectrum = self.spectrum(samples)
        real, imaginary = spectrum[:, : self.bins], spectrum[:, self.bins :]
        magnitude = torch.sqrt(real * real + imaginary * imaginary)
        return torch.cat([magnitude, angle(real, imaginary)], 1)

    def spectrum(self, samples: Tensor) -> Tensor:
        """Samples [1, S] -> real parts then imaginary ones [1, 2 bins, S // hop + 1]."""
        edge = self.size // 2
        padded = functional.pad(samples.unsqueeze(1), (edge, edge), mode="reflect")
        out: Tensor = functional.conv1d(padded, self.get_buffer("kernel"), stride=self.hop)
        return out


def angle(real: Tensor, imaginary: Tensor) -> Tensor:
    """The angle of each number, in (-pi, pi]."""
    upper = imaginary >= 0
    on_axis = torch.where(imaginary == 0, 0.0, torch.where(upper, pi / 2, -pi / 2))
    principal = torch.atan(imaginary / torch.where(real == 0, 1.0, real))
    turned = principal + torch.where(real < 0, torch.where(upper, pi, -pi), 0.0)
    return torch.where(real == 0, on_axis, turned)


def _kernel(size: int) -> Tensor:
    """Window times DFT [2 bins, 1, size]: real parts, then imaginary ones; exact zeros where a sine has them."""
    steps = np.outer(np.arange(size // 2 + 1), np.arange(size)) % size
    turns = 2 * np.pi / size * np.arange(size)
    sine = np.sin(turns)
    sine[[0, size // 2]] = 0
    window = 0.5 - 0.5 * np.cos(turns)
    kernel = np.concatenate([np.cos(turns)[steps], -sine[steps]]) * window
    return torch.from_numpy(kernel.astype(np.float32)[:, None])
