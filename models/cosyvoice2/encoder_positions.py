"""How attention encodes distances: the sinusoidal table, and its scores without a shift of rows.

The original multiplies a query with the table of every distance, and then shifts row i by i places, by Pad and Reshape:
right in the toolkit's simulator and garbage on the board (reference, Piper duration encoder). Here row i of the product
is shifted by a convolution of its own, of zeros and a one: rows are channels, so that it is one depthwise layer for all
of them, and its sums have one term that is not zero and round nothing.

Of one attention behind the upsampling (32 queries, 672 keys, 8 heads of 64), rk3588, 2.3.2: 0.29 megacycles, 10.6 MB of
traffic, 70.3 dB in the simulator, all on the NPU. Turning projected queries by constant angles instead, for the table
of a difference is a rotation of that of a place, is as exact and takes 0.38 megacycles and 12.5 MB, 69.5 dB.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import torch
from torch import Tensor, nn
from torch.nn import functional

WAVELENGTHS = 10_000.0
"""Ratio of the longest wave of the table to the shortest (upstream, EspnetRelPositionalEncoding)."""

MOST_ROWS = 16
"""Rows that are shifted together: a kernel has as many taps, and the NPU's has at most 31 (toolkit-facts)."""


def encoded(distances: Tensor, width: int) -> Tensor:
    """Sines and cosines of `distances` (query minus key, in steps), in turn: [.., width] float64."""
    rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * -(log(WAVELENGTHS) / width))
    angles = distances[..., None].double() * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


class DistanceScores(nn.Module):
    """Scores of the distances of T queries to S keys, whose last T are their own."""

    table: Tensor

    def __init__(self, linear: Tensor, heads: int, queries: int, keys: int) -> None:
        """`linear`: what projects the table, [heads D, C]."""
        super().__init__()
        self.queries, self.keys = queries, keys
        # Column c of a product is the distance keys - 1 - c; query i is keys - queries + i - j away from key j.
        distances = torch.arange(keys - 1, -queries, -1)
        projected = encoded(distances, linear.shape[1]) @ linear.double().t()
        by_head = projected.reshape(len(distances), heads, -1).permute(1, 2, 0)
        self.register_buffer("table", by_head.float().contiguous())
        for start, stop in row_groups(queries):
            kernel = torch.eye(stop - start).flip(0)[:, None, None]
            self.register_buffer(f"shift_{start}", kernel.contiguous())

    def forward(self, query: Tensor) -> Tensor:
        """Query [heads, T, D]; gives [heads, T, S]."""
        products, shifted = query @ self.table, []
        for start, stop in row_groups(self.queries):
            first, rows = self.queries - stop, stop - start
            part = products[:, start:stop, first : first + self.keys + rows - 1]
            kernel = self.get_buffer(f"shift_{start}")
            shifted.append(functional.conv2d(part.unsqueeze(2), kernel, groups=rows))
        return (torch.cat(shifted, dim=1) if len(shifted) > 1 else shifted[0]).squeeze(2)


def row_groups(rows: int) -> Iterator[tuple[int, int]]:
    """First row, and the one behind the last, of each group that is shifted together."""
    for start in range(0, rows, MOST_ROWS):
        yield start, min(start + MOST_ROWS, rows)
