"""The predictors of prosody (StyleTTS 2): how long each token lasts, its pitch and its energy; inference.

Durations are in frames of 600 samples (40 a second); pitch and energy come at twice that rate.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.adain_blocks import AdainBlock
from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, Linear, convolution, lstm

EPSILON = 1e-5
"""Of the reference's layer norm."""

CURVE_BLOCKS = 3
"""Residual blocks of a curve; the second doubles time. The reference's, in no config."""


class Prosody(nn.Module):
    """`weights` under `predictor.module`, weight norm folded; `depth` recurrent layers before the durations."""

    def __init__(self, weights: Arrays, depth: int) -> None:
        super().__init__()
        self.encoder = DurationEncoder(under(weights, "text_encoder"), depth)
        self.lstm = lstm(under(weights, "lstm"))
        self.chances = Linear(under(weights, "duration_proj.linear_layer"))
        self.shared = lstm(under(weights, "shared"))
        self.pitch, self.energy = _Curve(weights, "F0"), _Curve(weights, "N")

    def durations(self, encoded: Tensor, speed: Tensor) -> Tensor:
        """Encoded [1, T, C + S], speed float [1] -> int64 [1, T], at least 1 each."""
        chances = torch.sigmoid(self.chances(self.lstm(encoded)[0]))
        return torch.round(chances.sum(-1) / speed).clamp(min=1).long()

    def curves(self, aligned: Tensor, style: Tensor) -> tuple[Tensor, Tensor]:
        """Aligned [1, F, C + S], style [1, S] -> pitch in Hz and energy, each [1, 2 F]."""
        shared = self.shared(aligned)[0].transpose(1, 2)
        return self.pitch(shared, style), self.energy(shared, style)


class DurationEncoder(nn.Module):
    """The style is set beside the text before each LSTM, and once more at the end."""

    def __init__(self, weights: Arrays, depth: int) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(lstm(under(weights, f"lstms.{2 * i}")) for i in range(depth))
        self.styles = nn.ModuleList(Linear(under(weights, f"lstms.{2 * i + 1}.fc")) for i in range(depth))
        self.channels = 2 * weights["lstms.0.weight_hh_l0"].shape[1]  # of both directions

    def forward(self, text: Tensor, style: Tensor) -> Tensor:
        """Text [1, T, C], style [1, S] -> [1, T, C + S]."""
        beside = style.unsqueeze(1).expand(-1, text.shape[1], -1)
        x = torch.cat([text, beside], -1)
        for layer, read in zip(self.lstms, self.styles, strict=True):
            gamma, beta = read(style).unsqueeze(1).split(self.channels, -1)
            out = layer(x)[0]
            normed = functional.layer_norm(out, (self.channels,), eps=EPSILON)
            x = torch.cat([(1 + gamma) * normed + beta, beside], -1)
        return x


class _Curve(nn.Module):
    """Residual blocks, then one number a column."""

    def __init__(self, weights: Arrays, name: str) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(AdainBlock(under(weights, f"{name}.{i}")) for i in range(CURVE_BLOCKS))
        self.last = convolution(under(weights, f"{name}_proj"))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """X [1, C, F], style [1, S] -> [1, 2 F]."""
        for block in self.blocks:
            x = block(x, style)
        out: Tensor = self.last(x).squeeze(1)
        return out
