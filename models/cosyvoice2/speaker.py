"""CAM++ in the forms that cost an NPU least: signals are [1, C, 1, steps], and normalisations are folded.

- What goes from frequencies to channels is one convolution over both (kernel F / 8 by 5), and no Reshape.
- A gate sees the mean over all steps and the mean over its segment, both of the same signal: their sum is one product
  with a constant matrix [steps, segments], and the gate is laid out over its segments by another of ones and zeros. As
  slices, means and a Concat it would be 1124 layers for 656, 16.8 modelled ms for 16.1, and four times the time to
  build (measured on 300 frames, rk3588).

The number of steps is fixed and every one counts: there is no padding inside, for a mean would be of it too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.speaker_config import (
    DILATIONS,
    FREQUENCY_STEPS,
    RESIDUAL_BLOCKS,
    RESIDUAL_LAYERS,
    SEGMENT,
    TDNN_KERNEL,
    SpeakerConfig,
    steps_of,
)

Folded = Mapping[str, NDArray[np.float32]]


class Speaker(nn.Module):
    """The encoder for so many frames; its weights are `speaker_weights.folded`."""

    def __init__(self, weights: Folded, config: SpeakerConfig, frames: int) -> None:
        super().__init__()
        self.head = _Head(weights)
        tdnn, bias = _named(weights, "xvector.tdnn.linear")
        rows = config.features // FREQUENCY_STEPS
        over_both = tdnn.reshape(config.initial, config.head, rows, TDNN_KERNEL)
        self.tdnn = _conv(over_both, bias, (1, 2), (0, TDNN_KERNEL // 2))
        steps = steps_of(frames)
        context, spread = gate_matrices(steps)
        segments = spread.shape[0]  # of one, both means are one, and every step has the same gate
        self.context = nn.Parameter(context, requires_grad=False) if segments > 1 else None
        self.spread = nn.Parameter(spread, requires_grad=False) if segments > 1 else None
        self.blocks = nn.ModuleList(
            nn.ModuleList(_Layer(weights, f"xvector.block{block}.tdnnd{layer}", dilation) for layer in range(1, n + 1))
            for block, (n, dilation) in enumerate(zip(config.layers, DILATIONS, strict=True), 1)
        )
        transits = [f"xvector.transit{block}" for block in range(1, len(config.layers) + 1)]
        self.transit_norms = nn.ModuleList(_Step(weights, f"{stem}.nonlinear.batchnorm") for stem in transits)
        self.transits = nn.ModuleList(_pointwise(weights, f"{stem}.linear") for stem in transits)
        self.dense = _pointwise(weights, "xvector.dense.linear")
        self.unbiased = steps / (steps - 1)

    def forward(self, fbank: Tensor) -> Tensor:
        """fbank [1, 1, F, T] -> embedding [1, E]."""
        x = functional.relu(self.tdnn(self.head(fbank)))
        for block, norm, transit in zip(self.blocks, self.transit_norms, self.transits, strict=True):
            assert isinstance(block, nn.ModuleList)
            for layer in block:
                x = torch.cat([x, layer(x, self.context, self.spread)], 1)
            x = transit(norm(x))
        x = functional.relu(x)
        mean = x.mean(-1, keepdim=True)
        difference = x - mean
        variance = (difference * difference).mean(-1, keepdim=True) * self.unbiased
        made: Tensor = self.dense(torch.cat([mean, torch.sqrt(variance)], 1))
        return made.flatten(1)


def gate_matrices(steps: int) -> tuple[Tensor, Tensor]:
    """What makes of [.., steps] the sum of the mean over all and the mean over each segment, and what lays that out.

    Returns:
        [steps, segments], and [segments, steps] of ones and zeros.
    """
    segment = torch.arange(steps) // SEGMENT
    spread = (torch.arange(int(segment[-1]) + 1)[:, None] == segment[None, :]).double()
    context = 1 / steps + spread.T / spread.sum(1)
    return context.float(), spread.float()


class _Head(nn.Module):
    """Frequency by 8, [1, 1, F, T] -> [1, C, F / 8, T]."""

    def __init__(self, weights: Folded) -> None:
        super().__init__()
        self.first = _conv(*_named(weights, "head.conv1"), padding=(1, 1))
        stems = [
            (f"head.layer{layer}.{block}", 2 if block == 0 else 1)
            for layer in range(1, RESIDUAL_LAYERS + 1)
            for block in range(RESIDUAL_BLOCKS)
        ]
        self.blocks = nn.ModuleList(_Residual(weights, stem, stride) for stem, stride in stems)
        self.last = _conv(*_named(weights, "head.conv2"), (2, 1), (1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.first(x))
        for block in self.blocks:
            x = block(x)
        return functional.relu(self.last(x))


class _Residual(nn.Module):
    """Two convolutions and what went in, through a convolution of its own where the frequencies are halved."""

    def __init__(self, weights: Folded, stem: str, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(*_named(weights, f"{stem}.conv1"), (stride, 1), (1, 1))
        self.conv2 = _conv(*_named(weights, f"{stem}.conv2"), padding=(1, 1))
        short = f"{stem}.shortcut.0"
        self.shortcut = _conv(*_named(weights, short), (stride, 1)) if f"{short}.weight" in weights else None

    def forward(self, x: Tensor) -> Tensor:
        made = self.conv2(functional.relu(self.conv1(x)))
        return functional.relu(made + (x if self.shortcut is None else self.shortcut(x)))


class _Step(nn.Module):
    """A folded normalisation and a Relu: one layer of the NPU."""

    def __init__(self, weights: Folded, stem: str) -> None:
        super().__init__()
        scale, shift = (_tensor(weights[f"{stem}.{part}"])[None, :, None, None] for part in ("scale", "shift"))
        self.scale, self.shift = nn.Parameter(scale, requires_grad=False), nn.Parameter(shift, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x * self.scale + self.shift)


class _Layer(nn.Module):
    """One densely connected layer, [1, C, 1, steps] -> [1, growth, 1, steps]: a convolution under a gate."""

    def __init__(self, weights: Folded, stem: str, dilation: int) -> None:
        super().__init__()
        self.norm = _Step(weights, f"{stem}.nonlinear1.batchnorm")
        self.narrow = _pointwise(weights, f"{stem}.linear1")
        local, bias = _named(weights, f"{stem}.cam_layer.linear_local")
        padding = (0, local.shape[-1] // 2 * dilation)
        self.local = _conv(local[:, :, None], bias, padding=padding, dilation=(1, dilation))
        self.gate1 = _pointwise(weights, f"{stem}.cam_layer.linear1")
        self.gate2 = _pointwise(weights, f"{stem}.cam_layer.linear2")

    def forward(self, x: Tensor, context: Tensor | None, spread: Tensor | None) -> Tensor:
        x = functional.relu(self.narrow(self.norm(x)))
        seen = 2 * x.mean(-1, keepdim=True) if context is None else x @ context
        gate = torch.sigmoid(self.gate2(functional.relu(self.gate1(seen))))
        made: Tensor = self.local(x) * (gate if spread is None else gate @ spread)
        return made


def _named(weights: Folded, stem: str) -> tuple[Tensor, Tensor | None]:
    return _tensor(weights[f"{stem}.weight"]), _bias(weights, stem)


def _bias(weights: Folded, stem: str) -> Tensor | None:
    return _tensor(weights[f"{stem}.bias"]) if f"{stem}.bias" in weights else None


def _tensor(array: NDArray[np.float32]) -> Tensor:
    """Of an array that may be a file's, which nobody writes to."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _pointwise(weights: Folded, stem: str) -> nn.Conv2d:
    weight, bias = _named(weights, stem)
    return _conv(weight[:, :, None], bias)


def _conv(
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
) -> nn.Conv2d:
    """A convolution of `weight` [O, I, rows, steps]."""
    outs, ins, rows, steps = weight.shape
    with torch.device("meta"):
        made = nn.Conv2d(ins, outs, (rows, steps), stride, padding, dilation, bias=bias is not None)
    made.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias, requires_grad=False)
    return made


def speaker_of(weights: Folded, config: SpeakerConfig, frames: int) -> Speaker:
    """The encoder for `frames` frames, ready to run."""
    return Speaker(weights, config, frames).eval()
