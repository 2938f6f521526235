"""Kokoro's iSTFTNet generator from its seam to the spectrogram, inference only.

    x [1, C, N], har [1, 2 B, R N + 1], style [1, S]  ->  spec_phase [1, 2 B, R N + 1]

N latent frames, R columns a frame (60), B frequency bins (11). The first B rows are the magnitude's logarithm, the
others what the phase is the sine of; harmonic source, STFT and iSTFT stay outside. For each of two stages: LeakyRelu,
transposed convolution, plus a branch of the harmonics, then the mean of three residual blocks. A residual block is
three times AdaIN, Snake, dilated convolution, AdaIN, Snake, convolution (StyleTTS 2; HiFi-GAN; the paper of Snake is
arXiv:2006.08195). The second stage reflects one column on the left.

AdaIN takes its statistics over all columns it is given, so a window is a synthesis of its own. `Norm` says how: the
instance norm itself, or one that leaves padding out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.config import GeneratorConfig
from models.kokoro.generator_weights import Array, Arrays, under
from models.kokoro.layers import as_tensor

EPSILON = 1e-5
"""Of torch's InstanceNorm1d, which the reference uses as it is."""

INNER_SLOPE, LAST_SLOPE = 0.1, 0.01
"""LeakyRelu's slopes: the reference's before each upsampling, and torch's default before the last convolution."""

HARMONIC_DILATIONS = (1, 3, 5)
"""Of the blocks in the branches of the harmonics; written out in the reference, in no config."""

Layer = TypeVar("Layer", nn.Conv1d, nn.ConvTranspose1d)


class Normed(NamedTuple):
    """Normalised channels, as far as that went: (values - offset) factor is what they are, both [1, C, 1].

    AdaIN's scale and shift take them in, which spares passes over all columns.
    """

    values: Tensor
    factor: Tensor | None = None
    offset: Tensor | None = None


Norm = Callable[[Tensor], Normed]
"""[1, C, T] to each channel's values less their mean, over their deviation."""


def instance_norm(x: Tensor) -> Normed:
    """Over all T columns of x [1, C, T]."""
    return Normed(functional.instance_norm(x, eps=EPSILON))


def pooled_norm(x: Tensor) -> Normed:
    """The instance norm by the pooling engine's means, for targets on which the norm itself costs more.

    The mean is added as its negative: a difference is taken for the norm itself, by the passes as by the toolkit.
    """
    return _recentred(x + -_pooled(x), _pooled)


def masked_norm(mask: Tensor) -> Norm:
    """Over the columns where `mask` [1, 1, T] is 1, and 0 elsewhere.

    By fractions of means over all T, which the pooling engine computes (reference: a ReduceSum over time lowers to a
    13-bit register field): mean = GAP(x m) / GAP(m), d = (x - mean) m, var = GAP(d d) / GAP(m).
    """
    per_share = 1 / _pooled(mask)

    def mean(x: Tensor) -> Tensor:
        return _pooled(x) * per_share

    return lambda x: _recentred((x - mean(x * mask)) * mask, mean)


def _recentred(centred: Tensor, mean: Callable[[Tensor], Tensor]) -> Normed:
    """What is centred but for the rounding of its mean: that is what its own mean tells.

    In fp16 a mean is off by 2^-11 of itself, and in Kokoro it is up to 92 times the deviation: without, the simulator
    reaches 49 to 54 dB, with it 55 to 65 (three windows of 32 frames).
    """
    offset = mean(centred)
    return Normed(centred, _inverse_deviation(mean(centred**2) - offset**2), offset)


def _inverse_deviation(variance: Tensor) -> Tensor:
    """As a power: a division of one number a channel runs on the CPU (rknn-toolkit2 2.3.2, rk3588)."""
    return (variance + EPSILON) ** -0.5


def _pooled(x: Tensor) -> Tensor:
    return x.mean(dim=-1, keepdim=True)


class AdaIn(nn.Module):
    """Scale and shift, both read off the style, on the normalised channels."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.scale = _pointwise(weights["scale.weight"], weights["scale.bias"])
        self.shift = _pointwise(weights["shift.weight"], weights["shift.bias"])

    def forward(self, normed: Normed, style: Tensor) -> Tensor:
        """normed [1, C, T], style [1, S, 1] -> [1, C, T]."""
        scale, shift = self.scale(style), self.shift(style)
        if normed.factor is not None:
            scale = scale * normed.factor
        if normed.offset is not None:
            shift = shift - scale * normed.offset
        scaled: Tensor = normed.values * scale + shift
        return scaled


class Snake(nn.Module):
    """x + sin^2(alpha x) / alpha, alpha one for each channel."""

    def __init__(self, alpha: Array) -> None:
        super().__init__()
        self.alpha = nn.Parameter(as_tensor(alpha))

    def forward(self, x: Tensor) -> Tensor:
        """x [1, C, T] -> [1, C, T]."""
        return x + torch.sin(self.alpha * x) ** 2 / self.alpha


class Half(nn.Module):
    """AdaIN, Snake, convolution. A convolution sees zeros behind the last column, so padding is zeroed before it."""

    def __init__(self, weights: Arrays, dilation: int) -> None:
        super().__init__()
        self.adain = AdaIn(under(weights, "adain"))
        self.snake = Snake(weights["alpha"])
        self.conv = _conv(under(weights, "conv"), dilation=dilation)

    def forward(self, x: Tensor, style: Tensor, norm: Norm, mask: Tensor | None) -> Tensor:
        """x [1, C, T], style [1, S, 1] -> [1, C, T]."""
        out: Tensor = self.conv(_masked(self.snake(self.adain(norm(x), style)), mask))
        return out


class ResidualBlock(nn.Module):
    """For each dilation: a half with it and one without, plus what went in."""

    def __init__(self, weights: Arrays, dilations: Sequence[int]) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(Half(under(weights, f"{i}.0"), dilation) for i, dilation in enumerate(dilations))
        self.plain = nn.ModuleList(Half(under(weights, f"{i}.1"), 1) for i in range(len(dilations)))

    def forward(self, x: Tensor, style: Tensor, norm: Norm, mask: Tensor | None) -> Tensor:
        """x [1, C, T], style [1, S, 1] -> [1, C, T]."""
        for first, second in zip(self.dilated, self.plain, strict=True):
            x = second(first(x, style, norm, mask), style, norm, mask) + x
        return x


class Generator(nn.Module):
    """The generator; `weights` as `generator_weights` gives them."""

    def __init__(self, weights: Arrays, config: GeneratorConfig) -> None:
        super().__init__()
        rates = config.upsample_rates
        strides = [prod(rates[stage + 1 :]) for stage in range(len(rates))]
        dilations = config.resblock_dilation_sizes
        self.upsamplings = nn.ModuleList(_transposed(under(weights, f"ups.{i}"), rate) for i, rate in enumerate(rates))
        self.harmonics = nn.ModuleList(
            _conv(under(weights, f"noise_convs.{i}"), stride=stride) for i, stride in enumerate(strides)
        )
        self.harmonic_blocks = nn.ModuleList(
            ResidualBlock(under(weights, f"noise_res.{i}"), HARMONIC_DILATIONS) for i in range(len(rates))
        )
        self.blocks = nn.ModuleList(
            ResidualBlock(under(weights, f"resblocks.{i}"), dilations[i % len(dilations)])
            for i in range(len(rates) * len(dilations))
        )
        self.last = _conv(under(weights, "conv_post"))

    def forward(
        self,
        x: Tensor,
        har: Tensor,
        style: Tensor,
        masks: Sequence[Tensor] | None = None,
        norm: Norm | None = None,
    ) -> Tensor:
        """x [1, C, N], har [1, 2 B, R N + 1], style [1, S] -> spec_phase [1, 2 B, R N + 1].

        Args:
            x: latent frames; zero in padding.
            har: magnitude and phase of the harmonic source; zero in padding.
            style: the decoder's half of a voice.
            masks: 1 where there is no padding, at the rate of each stage: [1, 1, 10 N] and [1, 1, 60 N + 1].
            norm: how all of it normalises; None: `masked_norm` where there are masks, else `instance_norm`.
        """
        style = style.unsqueeze(-1)
        stages = len(self.upsamplings)
        share = len(self.blocks) // stages
        for i in range(stages):
            mask = None if masks is None else masks[i]
            used = norm or (instance_norm if mask is None else masked_norm(mask))
            branch = self.harmonic_blocks[i](self.harmonics[i](har), style, used, mask)
            x = self.upsamplings[i](functional.leaky_relu(x, INNER_SLOPE))
            if i == stages - 1:
                x = functional.pad(x, (1, 0), mode="reflect")
            x = x + branch
            blocks = [block(x, style, used, mask) for block in self.blocks[i * share : (i + 1) * share]]
            x = sum(blocks[1:], blocks[0]) * (1 / share if mask is None else mask / share)
        out: Tensor = self.last(functional.leaky_relu(x, LAST_SLOPE))
        return out


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask


def _conv(weights: Arrays, stride: int = 1, dilation: int = 1) -> nn.Conv1d:
    """A convolution that keeps the length, or divides it by `stride`."""
    outs, ins, width = weights["weight"].shape
    padding = (width - 1) * dilation // 2 if stride == 1 else (stride + 1) // 2
    with torch.device("meta"):
        made = nn.Conv1d(ins, outs, width, stride=stride, padding=padding, dilation=dilation)
    return _filled(made, weights)


def _pointwise(weight: Array, bias: Array) -> nn.Conv1d:
    """A linear layer on [1, S, 1]; as a convolution it needs no Reshape before and behind it."""
    return _conv({"weight": weight[:, :, None], "bias": bias})


def _transposed(weights: Arrays, rate: int) -> nn.ConvTranspose1d:
    """A transposed convolution that makes `rate` columns of each."""
    ins, outs, width = weights["weight"].shape
    with torch.device("meta"):
        made = nn.ConvTranspose1d(ins, outs, width, stride=rate, padding=(width - rate) // 2)
    return _filled(made, weights)


def _filled(module: Layer, weights: Arrays) -> Layer:
    module.load_state_dict({name: as_tensor(array) for name, array in weights.items()}, assign=True)
    return module
