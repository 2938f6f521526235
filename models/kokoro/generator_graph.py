"""The generator as ONNX graphs of a fixed width, traced by torch's exporter: one for each kind of engine."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from torch import Tensor, nn

from models import tracing
from models.kokoro.config import GeneratorConfig
from models.kokoro.generator import Generator, Norm

LATENT, HARMONICS, STYLE, MASK, FINE_MASK = "x", "har", "style", "mask", "mask_fine"
SPECTROGRAM = "spec_phase"


class Whole(nn.Module):
    """The generator on a window without padding."""

    def __init__(self, generator: Generator, norm: Norm) -> None:
        super().__init__()
        self.generator, self.norm = generator, norm

    def forward(self, x: Tensor, har: Tensor, style: Tensor) -> Tensor:
        """x [1, C, W], har [1, 2 B, R W + 1], style [1, S] -> [1, 2 B, R W + 1]."""
        out: Tensor = self.generator(x, har, style, norm=self.norm)
        return out


class Padded(nn.Module):
    """The generator on a window that may be padded."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, x: Tensor, har: Tensor, style: Tensor, mask: Tensor, mask_fine: Tensor) -> Tensor:
        """As `Whole`; the masks [1, 1, 10 W] and [1, 1, R W + 1] are 1 where there is no padding."""
        out: Tensor = self.generator(x, har, style, (mask, mask_fine))
        return out


class Walked(nn.Module):
    """Windows of the generator walked inside one graph, so that no axis gets longer than a window's.

    Each emits its own columns; the one on a seam is the later window's.
    """

    def __init__(self, generator: Generator, norm: Norm, steps: Sequence[tuple[int, int, int]], width: int) -> None:
        """`steps`: where each window starts, and which of its frames it emits, from and up to."""
        super().__init__()
        self.window, self.steps, self.width = Whole(generator, norm), tuple(steps), width

    def forward(self, x: Tensor, har: Tensor, style: Tensor) -> Tensor:
        """As `Whole`."""
        rate = (har.shape[-1] - 1) // x.shape[-1]
        pieces: list[Tensor] = []
        for start, first, last in self.steps:
            stop = start + self.width
            out = self.window(x[..., start:stop], har[..., rate * start : rate * stop + 1], style)
            closing = (start, first, last) == self.steps[-1]
            pieces.append(out[..., rate * (first - start) : rate * (last - start) + int(closing)])
        return torch.cat(pieces, dim=-1)


def traced(module: nn.Module, shapes: dict[str, tuple[int, ...]]) -> ir.Model:
    """`module` as an ONNX graph.

    Args:
        module: one of those above.
        shapes: of its inputs, by name, in order.
    """
    example = tuple(torch.zeros(shape) for shape in shapes.values())
    return tracing.traced(module, example, list(shapes), [SPECTROGRAM])


def shapes_of(config: GeneratorConfig, style_dim: int, frames: int, masked: bool) -> dict[str, tuple[int, ...]]:
    """The inputs of a window of `frames` frames, by name; with the masks where it is `masked`."""
    columns = config.columns_per_frame * frames + 1
    plain = {
        LATENT: (1, config.upsample_initial_channel, frames),
        HARMONICS: (1, 2 * config.bins, columns),
        STYLE: (1, style_dim),
    }
    masks = {MASK: (1, 1, config.upsample_rates[0] * frames), FINE_MASK: (1, 1, columns)}
    return {**plain, **masks} if masked else plain
