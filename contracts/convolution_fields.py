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

PAD_LIMIT = 15
"""Most pads of a Conv on a side that its field holds; for more the compiler puts a Pad in front (15 and 16 pads on the
five targets, measured, 2.3.2)."""

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


def spatial_axes(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> tuple[Axis, ...]:
    """The axes of a node with these attributes as ONNX lists them; an empty list of the last three is the default.

    Raises:
        ValueError: a list is for another number of axes, or holds what no kernel, stride or dilation can be; the
            message says which.
    """
    rank = len(lengths)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    listed = {"kernel": kernel, "strides": strides, "dilations": dilations}
    counts = {**{what: len(numbers) for what, numbers in listed.items()}, "pads": len(pads) / 2}
    if wrong := [what for what, count in counts.items() if count != rank]:
        raise ValueError(f"{', '.join(wrong)} for another number of axes")
    if wrong := [what for what, numbers in listed.items() if min(numbers, default=1) < 1]:
        raise ValueError(f"{', '.join(wrong)} below 1")
    sizes = zip(lengths, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)
    return tuple(Axis(*of_axis) for of_axis in sizes)


def stride_holds(stride: int) -> bool:
    """Whether the compiler brings `stride` into the field: it takes factors of 2 out, the rest must fit.

    So 2 to 8, 10, 12, 14, 16, 20, 24, ... do, and 9, 11, 13, 15, 17, 18, 30, 60 do not; nor does what is no stride.
    """
    if stride < 1:
        return False
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


TRANSPOSED_STRIDE_LIMIT = 8
"""The largest stride of a ConvTranspose that the field (offset 0x1014, shift 8 for the last axis, 11 for the one
before; it holds the stride less 1) holds."""

SPARED_STRIDES = frozenset({1, 2, 4, 8})
"""Where a stride is none of these, the compiler of some targets spreads the input (on the CPU) and runs a Conv."""


@dataclass(frozen=True)
class TransposedFields:
    """What a target's fields hold of a ConvTranspose, and of a dilated Conv's kernel.

    Attributes:
        kernel: the largest kernel (offset 0x1038 or 0x1024, shift 24 and 16, limit 0x1f).
        reach: the largest kernel - 1 - first pad (offset 0x1068, shift 4 and 0, limit 0xf), or None.
        spreads: whether other strides than `SPARED_STRIDES` are spread, and fit whatever their size.
        spreads_any: whether that is so with dilations, and with weights that are computed, too.
    """

    kernel: int
    reach: int | None
    spreads: bool
    spreads_any: bool


_LITE = TransposedFields(31, 15, spreads=True, spreads_any=True)

TRANSPOSED_FIELDS = {
    "rk3562": TransposedFields(31, None, spreads=False, spreads_any=False),
    "rk3566": _LITE,
    "rk3568": _LITE,
    "rk3576": TransposedFields(32, None, spreads=False, spreads_any=False),  # its field holds the kernel less 1
    "rk3588": TransposedFields(31, 15, spreads=True, spreads_any=False),
}

SHORTEST_OVERFLOW = 17
"""Taps of the shortest kernel that overflows a field of any target."""


def transposed_overflow(axes: Sequence[Axis], fields: TransposedFields, computed: bool = False) -> tuple[int, ...]:
    """Which of `axes` of a ConvTranspose overflow `fields`, by their place. The reach has no dilation in it.

    `computed` where its weights are no constant.
    """
    special = computed or any(axis.dilation > 1 for axis in axes)
    if not all(axis.stride in SPARED_STRIDES for axis in axes) and (fields.spreads_any if special else fields.spreads):
        return ()
    return tuple(place for place, axis in enumerate(axes) if not _fits(axis, fields))


def _fits(axis: Axis, fields: TransposedFields) -> bool:
    reaches = fields.reach is None or axis.kernel - 1 - axis.pad_begin <= fields.reach
    return reaches and axis.kernel <= fields.kernel and axis.stride <= TRANSPOSED_STRIDE_LIMIT


DILATIONS_KEPT = range(2, 32)
"""Dilations that the compiler gives to the hardware, with the whole kernel; it splits a kernel without any, and gathers
the taps of a wider one."""

LONGEST_DILATED = min(fields.kernel for fields in TRANSPOSED_FIELDS.values())
"""Taps that such a kernel may have on every target."""


def dilated_overflow(axes: Sequence[Axis], longest: int = LONGEST_DILATED) -> tuple[int, ...]:
    """Which of `axes` of a Conv have a dilated kernel of more than `longest` taps, by their place."""
    return tuple(place for place, axis in enumerate(axes) if axis.dilation in DILATIONS_KEPT and axis.kernel > longest)


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
