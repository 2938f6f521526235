"""The residual block of predictors and latent decoder (StyleTTS 2's `AdainResBlk1d`), inference.

    residual = conv2(leaky(adain2(conv1(pool(leaky(adain1(x)))))))
    out      = (residual + shortcut(x)) / sqrt(2)

A block that doubles time pools with a depthwise transposed convolution and repeats each column in its shortcut; one
that changes channels has a 1x1 convolution there. Both are seen from the weights.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.generator import EPSILON
from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, Linear, as_tensor, convolution, depthwise_doubling

SLOPE = 0.2
"""Of the reference's LeakyRelu."""


class AdaIn(nn.Module):
    """(1 + gamma) n + beta: n the instance norm, gamma and beta linear in the style."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.fc = Linear(under(weights, "fc"))
        # The reference's instance norm has an affine step of its own, which a checkpoint may leave at 1 and 0.
        self.gain = as_tensor(weights["norm.weight"]) if "norm.weight" in weights else None
        self.offset = as_tensor(weights["norm.bias"]) if "norm.bias" in weights else None

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """X [1, C, T], style [1, S] -> [1, C, T]."""
        gamma, beta = self.fc(style).unsqueeze(-1).split(self.fc.outs // 2, 1)
        normed = functional.instance_norm(x, weight=self.gain, bias=self.offset, eps=EPSILON)
        out: Tensor = (1 + gamma) * normed + beta
        return out


class AdainBlock(nn.Module):
    """`weights` of one block, weight norm folded."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.norms = nn.ModuleList(AdaIn(under(weights, f"norm{i}")) for i in (1, 2))
        self.convolutions = nn.ModuleList(convolution(under(weights, f"conv{i}")) for i in (1, 2))
        pool, shortcut = under(weights, "pool"), under(weights, "conv1x1")
        self.pool = depthwise_doubling(pool) if pool else None
        self.shortcut = convolution(shortcut) if shortcut else nn.Identity()

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """X [1, C, T], style [1, S] -> [1, D, T], or [1, D, 2 T]."""
        residual = functional.leaky_relu(self.norms[0](x, style), SLOPE)
        if self.pool is not None:
            residual = self.pool(residual)
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        residual = functional.leaky_relu(self.norms[1](self.convolutions[0](residual), style), SLOPE)
        out: Tensor = (self.convolutions[1](residual) + self.shortcut(x)) * 0.5**0.5
        return out
