"""The text encoder: what is said, one column a token (StyleTTS 2), inference on one unpadded sequence."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, convolution, embedding, layer_norm, lstm

SLOPE = 0.2
"""Of the reference's LeakyRelu."""

EPSILON = 1e-5
"""Of the reference's layer norm."""


class TextEncoder(nn.Module):
    """`weights` under `text_encoder.module`, weight norm folded; `depth` convolutions."""

    def __init__(self, weights: Arrays, depth: int) -> None:
        super().__init__()
        self.embedding = embedding(under(weights, "embedding"))
        self.convolutions = nn.ModuleList(convolution(under(weights, f"cnn.{i}.0")) for i in range(depth))
        self.norms = nn.ModuleList(layer_norm(_norm(under(weights, f"cnn.{i}.1")), EPSILON) for i in range(depth))
        self.lstm = lstm(under(weights, "lstm"))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens int64 [1, T] -> [1, C, T]."""
        x = self.embedding(tokens)
        for conv, norm in zip(self.convolutions, self.norms, strict=True):
            x = functional.leaky_relu(norm(conv(x.transpose(1, 2)).transpose(1, 2)), SLOPE)
        out: Tensor = self.lstm(x)[0].transpose(1, 2)
        return out


def _norm(weights: Arrays) -> Arrays:
    """A layer norm by torch's names; the reference has its own."""
    return {"weight": weights["gamma"], "bias": weights["beta"]}
