"""The flat cache of a step as rows, in and out, in the forms that stay on the NPU.

The graph has the cache as [1, R, 1, W], rows of W numbers, one behind the other: the same bytes. A slice [slots, C] is
whole rows, so that it is cut and joined along the rows. `valid` stays rows, one for each slot, of equal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from math import prod

import torch
from torch import Tensor

from contracts.contract import Cache, CacheSlice
from models.qwen3.cache import LAYERS, SPARE, VALID

State = dict[str, Tensor]


def unpacked(rows: Tensor, layout: Cache, group: int) -> State:
    """The slices of the cache [1, R, 1, W] but for what is spare, each [C / G, G, 1, slots] for groups of G channels.

    Neighbours of as many channels are turned together.
    """
    found: State = {}
    for run in _runs(layout):
        slots, channels = sum(part.shape[0] for part in run), run[0].shape[1]
        cut = _cut(rows, run[0].offset, slots * channels)
        turned = cut.reshape(-1, channels // group, 1, group).permute(1, 3, 2, 0)
        slot = 0
        for part in run:
            found[part.name] = turned[..., slot : slot + part.shape[0]]
            slot += part.shape[0]
    (valid,) = (part for part in layout.layout if part.name == VALID)
    return {**found, VALID: _cut(rows, valid.offset, prod(valid.shape))}


def packed(state: Mapping[str, Tensor], layout: Cache, rows: Tensor) -> Tensor:
    """The cache of `state`, slices [C / G, G, 1, slots] for any G; what is spare stays as it is in `rows`."""
    width, parts = rows.shape[3], []
    for run in _runs(layout):
        together = torch.cat([state[part.name] for part in run], dim=3)
        parts.append(together.permute(3, 0, 2, 1).reshape(1, -1, 1, width))
    spare = [_cut(rows, part.offset, prod(part.shape)) for part in layout.layout if part.name == SPARE]
    return torch.cat([*parts, state[VALID], *spare], dim=1)


def _cut(rows: Tensor, offset: int, count: int) -> Tensor:
    width = rows.shape[3]
    return rows[:, offset // width : (offset + count) // width]


def _runs(layout: Cache) -> list[list[CacheSlice]]:
    """Neighbours of as many channels, keys and values by themselves; without the last, `valid` and what is spare."""
    used = [part for part in layout.layout if part.name not in (VALID, SPARE)]
    return [list(run) for _, run in groupby(used, lambda part: (part.shape[1], part.name.startswith(LAYERS)))]


def grouped(x: Tensor, group: int) -> Tensor:
    """[1, C, ...] of T steps as [C / G, G, 1, T]."""
    return x.reshape(x.shape[1] // group, group, 1, x.shape[2] * x.shape[3])
