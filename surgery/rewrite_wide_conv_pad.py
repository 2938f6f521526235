"""Put zeros around what a convolution reads, where it wants more of them than the hardware's field holds.

Before: y = Conv(x), more than 15 pads on a side of an axis
After:  y = Conv(z), no pads along that axis; z = Concat of zeros, x, zeros, one for all convolutions that want the same

The field of the pads holds 15. For more the compiler puts a Pad of its own in front of each such convolution, and does
that on the CPU unless the channels are a multiple of 8 (of 4 on rk3566 and rk3568). A Concat is one pass over x as well
and stays on the NPU. Three convolutions of 20 channels and 65536 steps, the second of 11 taps and dilation 5 (25 pads a
side), modelled ms without and with the pass: rk3588 20.87, 5.51; rk3562 31.30, 15.94; rk3566 9.35, 9.35. Leaving 15
pads to the convolution saves 3 of 16400 KB, but where the compiler cuts a kernel up (33 taps) or gathers what it reads
(dilation 32) those become a Pad on the CPU again (measured, 2.3.2).

Left alone: channels of which the Pads stay on the NPU, unless there are more of them than there would be Concats; what
overflows another field, which `rewrite_strided_conv` and `rewrite_wide_dilation` rewrite with its pads; unknown
lengths.

Exact: the same products in the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from contracts.convolution_fields import (
    PAD_LIMIT,
    Axis,
    dilated_overflow,
    gathered_overflow,
    gathered_stride_overflow,
    overflowing,
)
from surgery.conv_axes import CONV, axes_of, numbers
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_of
from surgery.graph_builder import Builder
from surgery.inferred import static_shape
from surgery.matching import is_one_of
from surgery.node_rewrites import rewrite_nodes

DECLARATION = Declaration(
    name="rewrite_wide_conv_pad",
    summary="zeros around what convolutions read, where they want more than the hardware pads",
    exactness=Exact("the same products in the same sum"),
    after=frozenset(
        {
            "fold_constants",
            "fold_scales",
            "fold_shifts",
            "normalise_auto_pad",
            "normalise_static_inputs",
            "rewrite_affine_as_depthwise",
            "rewrite_narrow_conv",
            "rewrite_transposed_conv",
        }
    ),
    matches=(CONV,),
    pays_on=frozenset({"rk3562", "rk3576", "rk3588"}),
)

PADDED_CHANNELS = 8
"""Of a multiple of these the compiler's Pad is on the NPU: of 24, 32, 40 and 64 channels, not of 1, 4, 12, 17, 20 and
22 (measured, 2.3.2)."""

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})

SPATIAL = 2
"""The first axis of steps, behind batch and channels."""


@dataclass(frozen=True)
class _Plan:
    """A convolution, and its pads before and behind each axis: those that become zeros, and those that it keeps."""

    node: ir.Node
    zeros: tuple[tuple[int, int], ...]
    kept: tuple[tuple[int, int], ...]


def rewrite_wide_conv_pad() -> Pass:
    """The pass; its hits are convolutions."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _is_wide, _plan, _apply))


def _is_wide(node: ir.Node) -> bool:
    if not is_one_of(node, (CONV,)):
        return False
    pads = numbers(node, "pads", [0])
    return min(pads) >= 0 and max(pads) > PAD_LIMIT


def _plan(node: ir.Node) -> _Plan | None:
    zeros, given = _zeros(node), input_of(node)
    sizes = static_shape(given)
    if zeros is None or sizes is None:
        return None
    alike = [use.node for use in given.uses() if use.idx == 0 and _zeros(use.node) == zeros]
    concats = sum(1 for around in zeros if any(around))
    if sizes[1] % PADDED_CHANNELS == 0 and len(alike) <= concats:
        return None
    pads, rank = numbers(node, "pads", []), len(zeros)
    kept = tuple((0, 0) if any(zeros[axis]) else (pads[axis], pads[axis + rank]) for axis in range(rank))
    return _Plan(node, zeros, kept)


def _zeros(node: ir.Node) -> tuple[tuple[int, int], ...] | None:
    """What goes around each axis of the input of `node`, before and behind; None where it stays as it is."""
    if not _is_wide(node) or input_of(node).dtype not in FLOATS:
        return None
    axes = axes_of(node)
    if isinstance(axes, Refused) or any(overflow(axes) for overflow in OVERFLOWS):
        return None
    return tuple(_around(axis) for axis in axes)


OVERFLOWS = (overflowing, dilated_overflow, gathered_overflow, gathered_stride_overflow)
"""What other passes rewrite."""


def _around(axis: Axis) -> tuple[int, int]:
    pads = (axis.pad_begin, axis.pad_end)
    return pads if max(pads) > PAD_LIMIT else (0, 0)


def _apply(plan: _Plan) -> None:
    node = plan.node
    value = input_of(node)
    for axis, around in enumerate(plan.zeros, SPATIAL):
        if any(around):
            value = _surrounded(node, value, axis, around)
    node.replace_input_with(0, value)
    node.attributes["pads"] = ir.AttrInt64s("pads", [pads[side] for side in (0, 1) for pads in plan.kept])


def _surrounded(node: ir.Node, value: ir.Value, axis: int, around: tuple[int, int]) -> ir.Value:
    """`value` with so many zeros before and behind it along `axis`; what is there already for a node before `node`."""
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{value.name}")
    what = f"axis{axis}_{around[0]}_{around[1]}"
    readers = (use.node for use in value.uses())
    there = next((reader for reader in readers if reader.name == f"{make.prefix}/{what}"), None)
    return there.outputs[0] if there is not None else make.surrounded(value, axis, *around, what)
