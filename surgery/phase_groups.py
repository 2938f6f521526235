"""A transposed convolution along one axis, as few dense convolutions, each of which makes some phases of its output.

With g_k = d k - pad = s q_k + p_k, 0 <= p_k < s:

    y[s u + p] = sum over the taps k with p_k = p of w[k] x[u - q_k]

Phases whose taps reach over the same blocks q belong together: their convolution has no tap that is zero for all of
them, which one convolution of every phase has (`surgery.phases`: three blocks for a kernel of two strides). Where the
output has to be cut anyway, as its length is no multiple of the stride, the phases are counted from a step before it
where a tap's block begins: fewer groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contracts.convolution_fields import Axis


@dataclass(frozen=True)
class Group:
    """The convolution of some phases.

    Attributes:
        phases: which, ascending.
        kernel: its taps.
        begin, end: its paddings.
        taps: old tap, place of its phase in `phases`, place in the kernel.
    """

    phases: tuple[int, ...]
    kernel: int
    begin: int
    end: int
    taps: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Grouped:
    """Every phase of one axis, in groups by their first phase.

    Attributes:
        skipped: steps before the transposed convolution's output.
        length: of that output.
        steps: how many each phase has; together they have `skipped + length`, or more where that is no multiple.
    """

    skipped: int
    length: int
    steps: int
    groups: tuple[Group, ...]


def grouped_phases(axis: Axis, output_padding: int) -> Grouped:
    """The groups of a transposed convolution along `axis`; none where its output is empty."""
    length = axis.stride * (axis.length - 1) + axis.reach + output_padding - axis.pad_begin - axis.pad_end
    skipped = axis.pad_begin % axis.stride if length % axis.stride else 0
    steps = -(-(skipped + length) // axis.stride)
    if length < 1:
        return Grouped(skipped, length, steps, ())
    first = axis.pad_begin - skipped
    places = [divmod(axis.dilation * tap - first, axis.stride) for tap in range(axis.kernel)]
    reached: dict[int, list[int]] = {}
    for block, phase in places:
        reached.setdefault(phase, []).append(block)
    spans = {phase: _span(blocks, axis.length, steps) for phase, blocks in reached.items()}
    # a phase that no tap reaches is its bias alone: it joins any others, with weights of zero
    idle = next(iter(spans.values()))
    together: dict[tuple[int, int], list[int]] = {}
    for phase in range(axis.stride):
        together.setdefault(spans.get(phase, idle), []).append(phase)
    groups = (_group(low, high, phases, places, axis.length, steps) for (low, high), phases in together.items())
    return Grouped(skipped, length, steps, tuple(groups))


def weights_of_group(weight: NDArray[np.generic], group: Group) -> NDArray[np.generic]:
    """What `group` has of `weight` [C, M, k], as [phases * M, C, kernel]: the channels of a phase side by side."""
    given, made, _ = weight.shape
    wide = np.zeros((len(group.phases), made, given, group.kernel), weight.dtype)
    for tap, phase, at in group.taps:
        wide[phase, :, :, at] = weight[:, :, tap].T
    return wide.reshape(-1, given, group.kernel)


def _span(blocks: Sequence[int], length: int, steps: int) -> tuple[int, int]:
    """First and last block of a kernel with `blocks` in it that needs no negative padding, and none as long as itself.

    Of those the compiler for rk3576 prints an error, `Conv MultiCore grade2 failed in getNewLineIndex` (2.3.2).
    """
    ahead = steps - length
    return min(*blocks, ahead, 0), max(*blocks, ahead, 0)


def _group(
    low: int, high: int, phases: Sequence[int], places: Sequence[tuple[int, int]], length: int, steps: int
) -> Group:
    taps = [(tap, phases.index(phase), high - block) for tap, (block, phase) in enumerate(places) if phase in phases]
    return Group(tuple(phases), high - low + 1, high, steps - length - low, tuple(taps))
