"""Layers of CosyVoice2's flow estimator in the forms that cost an NPU least: signals are [2, C, 1, T], time last.

No frame is masked on its way: what is padding stands behind what is real, convolutions see the past only, and attention
leaves it out by its bias.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.estimator import EPSILON, Weights
from models.cosyvoice2.estimator_config import HEAD_DIM, KERNEL
from models.npu_layers import channel_norm, convolution, gelu, pointwise

TAIL = KERNEL - 1
"""Frames of the past that a convolution sees."""


class Norm(nn.Module):
    """A layer normalisation over the channels of [2, C, 1, T]."""

    weight: Tensor
    bias: Tensor

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.register_buffer("weight", weights[f"{name}.weight"])
        self.register_buffer("bias", weights[f"{name}.bias"])

    def forward(self, x: Tensor) -> Tensor:
        """X [2, C, 1, T]."""
        return channel_norm(x, self.weight, self.bias, EPSILON)


class Causal(nn.Module):
    """A convolution that sees two frames of the past."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.conv = convolution(weights[f"{name}.weight"], weights[f"{name}.bias"])

    def forward(self, x: Tensor, tails: Tails) -> Tensor:
        """X [2, C, 1, T], its past of `tails`."""
        out: Tensor = self.conv(tails.before(x))
        return out


class Tails:
    """The last two frames of what each convolution of a block read, in the order in which they run.

    Args:
        old: of the step before [2, their channels, 1, 2]; None: what is run has no step before it, but zeros.
    """

    def __init__(self, old: Tensor | None) -> None:
        self._old, self._at = old, 0
        self._new: list[Tensor] = []

    def before(self, x: Tensor) -> Tensor:
        """X [2, C, 1, T] behind its past."""
        if self._old is None:
            return functional.pad(x, (TAIL, 0))
        tail = self._old[:, self._at : self._at + x.shape[1]]
        self._at += x.shape[1]
        joined = torch.cat((tail, x), dim=3)
        self._new.append(joined[..., -TAIL:])
        return joined

    def new(self) -> Tensor:
        """For the next step [2, their channels, 1, 2]."""
        return torch.cat(self._new, dim=1)


class Normed(nn.Module):
    """A convolution, a norm and Mish."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.conv, self.norm = Causal(weights, f"{name}.block.0"), Norm(weights, f"{name}.block.2")

    def forward(self, x: Tensor, tails: Tails) -> Tensor:
        """X [2, C, 1, T]."""
        return functional.mish(self.norm(self.conv(x, tails)))


class Residual(nn.Module):
    """A residual block, between whose convolutions the time stands."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.first, self.second = Normed(weights, f"{name}.block1"), Normed(weights, f"{name}.block2")
        self.beside = pointwise(weights[f"{name}.res_conv.weight"][:, :, 0], weights[f"{name}.res_conv.bias"])

    def forward(self, x: Tensor, shift: Tensor, tails: Tails) -> Tensor:
        """X [2, C, 1, T]; `shift` [2, C, 1, 1] is what the time adds."""
        out: Tensor = self.second(self.first(x, tails) + shift, tails) + self.beside(x)
        return out


class Transformer(nn.Module):
    """A transformer layer: attention to new frames and those of the past, and a feed-forward."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.norm, self.norm_inner = Norm(weights, f"{name}.norm1"), Norm(weights, f"{name}.norm3")
        attention = f"{name}.attn1"
        # The root of a head's width is a power of two: dividing the weights by it changes no bit of a score.
        self.query = pointwise(weights[f"{attention}.to_q.weight"] / math.sqrt(HEAD_DIM), None)
        self.key = pointwise(weights[f"{attention}.to_k.weight"], None)
        self.value = pointwise(weights[f"{attention}.to_v.weight"], None)
        self.out = pointwise(weights[f"{attention}.to_out.0.weight"], weights[f"{attention}.to_out.0.bias"])
        self.widen = pointwise(weights[f"{name}.ff.net.0.proj.weight"], weights[f"{name}.ff.net.0.proj.bias"])
        self.narrow = pointwise(weights[f"{name}.ff.net.2.weight"], weights[f"{name}.ff.net.2.bias"])

    def forward(self, x: Tensor, bias: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
        """One layer.

        Args:
            x: [2, C, 1, T].
            bias: added to the scores [2 heads, 1, past and T].
            past: keys and values of frames of the past, [2 heads, 64, 1, S]; None: there are none.

        Returns:
            x, and the keys and values of its frames, [2 heads, 64, 1, T].
        """
        normed = self.norm(x)
        query, key, value = (_by_head(layer(normed)) for layer in (self.query, self.key, self.value))
        keys, values = (key, value) if past is None else (torch.cat((past[0], key), 3), torch.cat((past[1], value), 3))
        scores = query.squeeze(2).transpose(1, 2) @ keys.squeeze(2) + bias
        mixed = values.squeeze(2) @ torch.softmax(scores, dim=-1).transpose(1, 2)
        x = x + self.out(mixed.reshape(x.shape[0], -1, 1, x.shape[3]))
        return x + self.narrow(gelu(self.widen(self.norm_inner(x)))), key, value


def _by_head(x: Tensor) -> Tensor:
    """[2, heads 64, 1, T] -> [2 heads, 64, 1, T]: the same bytes."""
    return x.reshape(-1, HEAD_DIM, 1, x.shape[3])
