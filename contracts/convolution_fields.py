"""The hardware fields that a convolution's sizes go into, and which sizes the compiler makes fit.

Measured with rknn-toolkit2 2.3.2 (one graph of one layer for each size, its log read for REGTASK lines). The stride's
field is the same on rk3562, rk3566, rk3568, rk3576 and rk3588; no other target was measured.

- Conv: strides of 2 to 256 on five targets, and 500 drawn convolutions of one and two axes on rk3588.
- ConvTranspose: kernels of 1 to 64, paddings of 0 to 31, strides of 1 to 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STRIDE_LIMIT = 7
"""The largest stride that the field (offset 0x1014, shift 0 for the last axis, 3 for the one before) holds."""

_OWN_SPLIT_LONGEST = 15
"""Up to here the compiler itself cuts an axis into pieces where kernel and stride are equal and divide it."""


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a convolution or pool: steps of its input, and its attributes along it."""

    length: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pad_begin: int = 0
    pad_end: int = 0

    @property
    def reach(self) -> int:
        """How many steps the kernel covers, the gaps of its dilation included."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def steps(self) -> int:
        """How many steps a Conv makes of it (ONNX operator specification); below 1 where the kernel is too long."""
        return (self.length + self.pad_begin + self.pad_end - self.reach) // self.stride + 1


def stride_holds(stride: int) -> bool:
    """Whether the compiler brings `stride` into the field: it takes factors of 2 out, the rest must fit.

    So 2 to 8, 10, 12, 14, 16, 20, 24, ... do, and 9, 11, 13, 15, 17, 18, 30, 60 do not.
    """
    while stride % 2 == 0:
        stride //= 2
    return stride <= STRIDE_LIMIT


def overflowing(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Which of `axes` of a Conv overflow the stride's field, by their place; none where it builds with no such line.

    An axis that the compiler cuts itself, or that makes one step, does not, unless another one has its factors taken
    out.
    """
    spared = {place for place, axis in enumerate(axes) if _is_spared(axis)}
    halved = {place for place, axis in enumerate(axes) if axis.stride > STRIDE_LIMIT and stride_holds(axis.stride)}
    if halved - spared:
        spared = set()
    return tuple(place for place, axis in enumerate(axes) if not stride_holds(axis.stride) and place not in spared)


def _is_spared(axis: Axis) -> bool:
    if axis.pad_begin or (axis.dilation != 1 and axis.kernel != 1):
        return False
    one_step = axis.kernel == axis.length and axis.steps == 1
    divides = axis.length % axis.stride == 0 and not axis.pad_end
    return one_step or (axis.kernel == axis.stride <= _OWN_SPLIT_LONGEST and divides)


TRANSPOSED_STRIDES = frozenset({1, 2, 4, 8})
"""Where every stride is one of these, or there are dilations, the compiler has an operator of its own; else it spreads
the input and runs a Conv of any size."""


@dataclass(frozen=True)
class KernelFields:
    """The largest kernel that a target's field holds, and the largest reach (kernel - 1 - pad) of a ConvTranspose."""

    kernel: int
    reach: int | None


STRICTEST = KernelFields(31, 15)
"""Offsets 0x1038 (shift 16 and 24, limit 0x1f) and 0x1068 (shift 0 and 4, limit 0xf)."""

KERNEL_FIELDS = {
    "rk3562": KernelFields(31, None),  # offset 0x1024, shift 24, limit 0x1f
    "rk3566": STRICTEST,
    "rk3568": STRICTEST,
    "rk3576": KernelFields(32, None),  # as rk3562, and holds the kernel less 1
    "rk3588": STRICTEST,
}


def transposed_overflow(axes: Sequence[Axis], fields: KernelFields = STRICTEST) -> tuple[int, ...]:
    """Which of `axes` of a ConvTranspose overflow `fields`, by their place. The reach has no dilation in it."""
    if not all(axis.stride in TRANSPOSED_STRIDES for axis in axes) and all(axis.dilation == 1 for axis in axes):
        return ()
    return tuple(
        place
        for place, axis in enumerate(axes)
        if axis.kernel > fields.kernel or (fields.reach is not None and axis.kernel - 1 - axis.pad_begin > fields.reach)
    )


DILATIONS_KEPT = range(2, 32)
"""Dilations that the compiler gives to the hardware, with the whole kernel; it splits a kernel without any, and gathers
the taps of a wider one."""


def dilated_overflow(axes: Sequence[Axis], fields: KernelFields = STRICTEST) -> tuple[int, ...]:
    """Which of `axes` of a Conv have a dilated kernel that overflows `fields`, by their place."""
    return tuple(
        place for place, axis in enumerate(axes) if axis.dilation in DILATIONS_KEPT and axis.kernel > fields.kernel
    )


POOLED_LIMIT = 8192
"""Steps of an axis that the pooling unit's fields hold (offset 0x600c along the last axis, 0x6010 along the one before,
limit 0x1fff for the last step's number)."""

LONGEST_MAX_POOL = 8
LONGEST_AVERAGE_POOL = 7
"""Kernels of the pooling unit; a longer MaxPool falls to the CPU, a longer AveragePool becomes a Conv."""

AVERAGING_TARGETS = frozenset({"rk3566", "rk3568", "rk3588"})
"""Whose pooling unit averages; on the others every AveragePool becomes a Conv. None does with paddings (CPU)."""


def pooled_overflow(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Which of `axes` of a pool that runs on the pooling unit overflow its fields, by their place."""
    return tuple(place for place, axis in enumerate(axes) if _last_pooled(axis) >= POOLED_LIMIT)


def _last_pooled(axis: Axis) -> int:
    """The number of the last step that a pool along `axis` reads."""
    return min(axis.length, axis.stride * (axis.steps - 1) + axis.reach - axis.pad_begin) - 1


GATHERED_LIMIT = 8192
"""Steps of the tensor of all taps, which the compiler gathers for wider dilations, that the gather's fields hold."""


def gathered_overflow(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Which of `axes` of a Conv of stride 1 have a dilation whose gathered taps overflow, by their place."""
    return tuple(
        place for place, axis in enumerate(axes) if _gathers(axis) and axis.kernel * axis.steps > GATHERED_LIMIT
    )


def gathered_stride_overflow(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Which of `axes` of a Conv have a dilation whose gathered taps are strided over too far, by their place.

    The gathered taps of an output stand side by side, so that kernel and stride of what reads them are the kernel.
    """
    return tuple(
        place
        for place, axis in enumerate(axes)
        if _gathers(axis) and overflowing([Axis(axis.kernel * axis.steps, axis.kernel, axis.kernel)])
    )


def _gathers(axis: Axis) -> bool:
    return axis.dilation >= DILATIONS_KEPT.stop and axis.kernel > 1
