"""A strided convolution along one axis, as one of smaller stride over blocks of that axis.

With blocks of f steps, f a divisor of the stride s, and x'[c f + p, b] = x[c, f b + p] (zeros outside):

    y[o] = sum_j w[j] x[s o + d j - pad]  =  sum_{p, q} w'[p, q] x'[p, (s/f) o + q + low]
    w'[p, q] = sum of w[j] over the taps with d j - pad = f (q + low) + p          (one tap at most)

so the new kernel is the taps' blocks, low to high, its stride s/f; low <= 0 blocks of padding begin it. Where there is
one output only, no stride is needed, and blocks of one step will do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contracts.convolution_fields import STRIDE_LIMIT, Axis

_CHANNELS_AT_ONCE = 32
"""Input channels that the NPU takes at once in fp16: modelled cycles go by the kernel times the channels rounded up to
these (measured, layer table of rk3588, nine layers; 2.3.2)."""

_LONGEST_KERNEL = 16
"""A longer one is split by the compiler into slices and a sum (measured, 2.3.2)."""

_WHOLE_ROWS = 8
"""A Reshape of an axis that is no multiple of 8 falls to the CPU where the channels are none either (measured)."""


@dataclass(frozen=True)
class Blocks:
    """An axis cut into blocks.

    Attributes:
        size: steps of a block.
        count: how many blocks there are.
        kept: steps of the input that stay; the rest is used by no output.
        added: zeros behind them, up to `count` blocks.
        axis: the new convolution along the blocks.
        taps: of each old tap, its block and its place in it.
    """

    size: int
    count: int
    kept: int
    added: int
    axis: Axis
    taps: tuple[tuple[int, int], ...]


def best_blocks(axis: Axis, channels: int) -> Blocks:
    """The cheapest cut of `axis` (whose `steps` are 1 at least) whose stride fits the field; `channels` of a group."""
    if axis.steps == 1:
        return _blocks(replace(axis, stride=1), 1, steps=1)
    strides = [stride for stride in range(1, STRIDE_LIMIT + 1) if axis.stride % stride == 0]
    return min(
        (_blocks(axis, axis.stride // stride, axis.steps) for stride in strides), key=lambda made: _cost(made, channels)
    )


def spread(weight: NDArray[np.generic], spatial: int, blocks: Blocks) -> NDArray[np.generic]:
    """`weight` [M, C, k...] with the taps of spatial axis `spatial` spread over blocks: [M, C * size, ..., K, ...]."""
    taps = np.moveaxis(weight, 2 + spatial, -1)
    wide = np.zeros((*taps.shape[:-1], blocks.size, blocks.axis.kernel), weight.dtype)
    for tap, (block, place) in enumerate(blocks.taps):
        wide[..., place, block] = taps[..., tap]
    made = np.moveaxis(np.moveaxis(wide, -1, 2 + spatial), -1, 2)
    return np.ascontiguousarray(made.reshape(made.shape[0], made.shape[1] * blocks.size, *made.shape[3:]))


def _blocks(axis: Axis, size: int, steps: int) -> Blocks:
    """`axis` in blocks of `size`, for `steps` outputs."""
    stride = axis.stride // size
    places = [divmod(axis.dilation * tap - axis.pad_begin, size) for tap in range(axis.kernel)]
    low, high = places[0][0], max(places[-1][0], 0)
    needed = stride * (steps - 1) + high + 1
    whole = axis.length // size
    count = needed if steps == 1 and needed <= whole else whole
    if needed > whole:
        count = _padded_count(axis.length, size, needed + stride)
    kernel = Axis(count, high - low + 1, stride, 1, -low, max(0, needed - count))
    kept = min(axis.length, count * size)
    taps = tuple((block - low, place) for block, place in places)
    return Blocks(size, count, kept, count * size - kept, kernel, taps)


def _padded_count(length: int, size: int, end: int) -> int:
    """Blocks that hold `length`, in whole rows where these stay below `end`, from which on there are more outputs."""
    count = least = -(-length // size)
    if length % size:
        while count * size % _WHOLE_ROWS:
            count += 1
    return count if count < end else least


def _cost(blocks: Blocks, channels: int) -> tuple[bool, int, int]:
    """Modelled arithmetic, after whether the kernel stays whole; among equals the smaller blocks."""
    rounded = -(-channels * blocks.size // _CHANNELS_AT_ONCE) * _CHANNELS_AT_ONCE
    return blocks.axis.kernel > _LONGEST_KERNEL, rounded * blocks.axis.kernel, blocks.size
