"""Codes to the hidden state behind the quantizer in the operators of an NPU, which looks nothing up.

A codebook's row is its entries' product with a one-hot vector, and that is relu(1 - |code - k|), k = 0 .. size - 1:
a convolution of one input channel, an absolute value, a Relu. The rows of several codebooks, and their sum, are one
convolution of [1, size, Q, N] whose kernel is as high as there are codebooks. One Gather of all rows costs the host
tens of milliseconds instead, as traffic of the CPU (docs/qwen3.md).

Exact: codes, k and their differences are integers that fp16 holds, sizes up to 2048. A code that is none, negative or
past the last entry, has no entry: it adds zeros. A lookup would take another codebook's, or stop.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.quantizer import JoinedTable, Quantizer, ResidualQuantizer

EXACT_SIZE = 2048
"""Most entries of a codebook that are told apart: fp16 holds every integer up to this (11 bits)."""

TOGETHER = 5
"""Codebooks whose rows one convolution sums. More at a time, of 2048 entries each, and the toolkit cuts its input into
parts, each of which is written once more (measured, 2.3.2, rk3588: 15 at a time become three parts; 5 are one)."""


class OneHotTable(nn.Module):
    """Codes [1, Q, N] (integers) -> [1, codebook_dim, 1, N]."""

    def __init__(self, quantizer: Quantizer) -> None:
        """The table of `quantizer`, whose codebooks have `EXACT_SIZE` entries or fewer."""
        super().__init__()
        self.semantic = quantizer.semantic
        self.first = _OneHotRows(quantizer.rvq_first)
        self.rest = _OneHotRows(quantizer.rvq_rest)

    def forward(self, codes: Tensor) -> Tensor:
        """See the class."""
        rows = codes.unsqueeze(1).to(self.first.projection.dtype)  # the host casts integers, once
        out: Tensor = self.first(rows[:, :, : self.semantic]) + self.rest(rows[:, :, self.semantic :])
        return out


class LookedUp(nn.Module):
    """The same by lookup, for codebooks of any size."""

    def __init__(self, quantizer: Quantizer) -> None:
        super().__init__()
        self.table = JoinedTable(quantizer)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [1, Q, N] (integers) -> [1, codebook_dim, 1, N]."""
        out: Tensor = self.table(codes).unsqueeze(2)
        return out


def codes_table(quantizer: Quantizer) -> OneHotTable | LookedUp:
    """What a step takes codes with: an NPU's operators where they are exact."""
    size = quantizer.rvq_first.vq.entries()[0].shape[0]
    return OneHotTable(quantizer) if size <= EXACT_SIZE else LookedUp(quantizer)


def one_hot(codes: Tensor, size: int) -> Tensor:
    """Numbers [1, 1, Q, N] -> [1, size, Q, N]: one where the channel is the code, zero elsewhere."""
    ones = torch.ones(size, 1, 1, 1, dtype=codes.dtype)
    channels = torch.arange(size).to(codes.dtype)
    differences = functional.conv2d(codes, ones, -channels)
    # |x| as a LeakyRelu, which the compiler takes into the convolution.
    return functional.relu(1 - functional.leaky_relu(differences, -1.0))


class _OneHotRows(nn.Module):
    """Codes [1, 1, Q, N] (floats) of a group of codebooks -> its part of the hidden state, [1, codebook_dim, 1, N]."""

    projection: Tensor

    def __init__(self, group: ResidualQuantizer) -> None:
        super().__init__()
        entries = group.vq.entries()
        self.size, self.count = entries[0].shape[0], len(entries)
        for number, start in enumerate(range(0, self.count, TOGETHER)):
            kernel = torch.stack(entries[start : start + TOGETHER], dim=-1)  # [size, width, some]
            self.register_buffer(f"kernel_{number}", kernel.transpose(0, 1)[..., None].contiguous())
        self.register_buffer("projection", group.output_proj.weight[:, :, None])

    def forward(self, codes: Tensor) -> Tensor:
        """See the class."""
        total, *others = self._sums(codes)
        for part in others:
            total = total + part
        return functional.conv2d(total, self.projection)

    def _sums(self, codes: Tensor) -> Iterator[Tensor]:
        """Of some codebooks at a time, their rows' sum [1, width, 1, N]."""
        for number, start in enumerate(range(0, self.count, TOGETHER)):
            some = codes[:, :, start : start + TOGETHER]
            yield functional.conv2d(one_hot(some, self.size), self.get_buffer(f"kernel_{number}"))
