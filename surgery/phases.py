"""A transposed convolution along one axis, as a convolution that makes every phase of its output as a channel.

With g_k = d k - pad = s q_k + p_k, 0 <= p_k < s:

    y[s u + p] = sum over the taps k with p_k = p of w[k] x[u - q_k]

so tap k stands in phase p_k, at place high - q_k of a kernel that begins high steps before u; high is the largest q_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contracts.convolution_fields import Axis


@dataclass(frozen=True)
class Phases:
    """One axis of the convolution that makes the phases.

    Attributes:
        stride: how many phases there are.
        kernel: taps of each.
        begin, end: paddings.
        steps: how many steps of each phase the convolution makes.
        length: of the transposed convolution's output, at most `stride * steps`.
        taps: of each old tap, its phase and its place in the kernel.
    """

    stride: int
    kernel: int
    begin: int
    end: int
    steps: int
    length: int
    taps: tuple[tuple[int, int], ...]


def phases_of(axis: Axis, output_padding: int) -> Phases:
    """The phases of a transposed convolution along `axis` (length of its output: ONNX operator specification)."""
    pads = axis.pad_begin + axis.pad_end
    length = axis.stride * (axis.length - 1) + axis.reach + output_padding - pads
    places = [divmod(axis.dilation * tap - axis.pad_begin, axis.stride) for tap in range(axis.kernel)]
    low, high = min(places[0][0], 0), max(places[-1][0], 0)
    end = max(0, -(-length // axis.stride) - low - axis.length)
    steps = axis.length + end + low
    taps = tuple((phase, high - block) for block, phase in places)
    return Phases(axis.stride, high - low + 1, high, end, steps, length, taps)


def spread_to_phases(weight: NDArray[np.generic], group: int, axes: Sequence[Phases]) -> NDArray[np.generic]:
    """`weight` [C, M / group, k...] as [M * phases, C / group, K...], the phases of a channel side by side."""
    given, made = weight.shape[:2]
    by_group = weight.reshape(group, given // group, made, *weight.shape[2:])
    taps = np.swapaxes(by_group, 1, 2).reshape(group * made, given // group, *weight.shape[2:])
    for place, axis in enumerate(axes):
        last = np.moveaxis(taps, 2 + place, -1)
        wide = np.zeros((*last.shape[:-1], axis.stride, axis.kernel), weight.dtype)
        for tap, (phase, at) in enumerate(axis.taps):
            wide[..., phase, at] = last[..., tap]
        apart = np.moveaxis(np.moveaxis(wide, -1, 2 + place), -1, 1)
        taps = apart.reshape(apart.shape[0] * axis.stride, *apart.shape[2:])
    return np.ascontiguousarray(taps)
