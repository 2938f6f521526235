"""Rewrite a convolution with a wide dilation as one without, over as many columns as the dilation has steps.

Before: y = Conv(x), x [N, C, T], dilation d, stride 1
After:  y = Reshape(Conv(Reshape(x))), [N, C, T] -> [N, C, B, d], a kernel of k by 1 down the columns, and [N, M, U, d]
        -> [N, M, U d] cut to y's length; x filled up with zeros where B d is more than T

Output o = d u + p reads the steps d (u + j) + p - pad: with pad = d a + r and r zeros before x, those are the rows
u + j - a of column p. The weights stay as they are.

From dilation 32 on the compiler gathers every tap, a tensor of k T steps, and the gather's fields hold 8192 (offsets
0x4038 and 0x5048; 98 000 lines for 64 channels, T 16384, dilation 512). This form logs none, and moves a fifth fewer
bytes where d divides T. What reads the gathered taps has the kernel for its stride, which may overflow too (0x1014, 17
taps), and below dilation 32 more than 31 taps overflow another field (0x1038). Measured, 2.3.2.

Left alone: what fits; strides; two axes of more than one step (the gate `structure.fields` and the log judge those).

Exact: the same products in the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.convolution_fields import (
    DILATIONS_KEPT,
    LONGEST_DILATED,
    Axis,
    dilated_overflow,
    gathered_overflow,
    gathered_stride_overflow,
)
from surgery.conv_axes import CONV, axes_of, kernel_of, numbers
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_at, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.matching import is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.weights import weight_of

DECLARATION = Declaration(
    name="rewrite_wide_dilation",
    summary="a convolution dilated too widely for the hardware's fields, as an undilated one over columns",
    exactness=Exact("the same products in the same sum"),
    after=frozenset({"fold_constants", "normalise_auto_pad", "normalise_static_inputs", "rewrite_strided_conv"}),
    matches=(CONV,),
)


@dataclass(frozen=True)
class _Plan:
    """A convolution, the one axis that is more than a step, its place, and the weights [M, C, k...]."""

    node: ir.Node
    axis: Axis
    place: int
    weight: NDArray[np.generic]


def rewrite_wide_dilation() -> Pass:
    """The pass; its hits are convolutions."""

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _dilated, _plan, _apply))


def _dilated(node: ir.Node) -> bool:
    widest = max(numbers(node, "dilations", [1])) if is_one_of(node, (CONV,)) else 1
    long = max(kernel_of(node), default=0) > LONGEST_DILATED
    return widest >= DILATIONS_KEPT.stop or (widest > 1 and long)


def _plan(node: ir.Node) -> _Plan | None:
    axes, weight = axes_of(node), weight_of(input_at(node, 1))
    if isinstance(axes, Refused) or weight is None:
        return None
    wide = [place for place, axis in enumerate(axes) if axis.dilation > 1]
    beside = [axis for place, axis in enumerate(axes) if place not in wide[:1]]
    if any((axis.length, axis.kernel, axis.pad_begin, axis.pad_end) != (1, 1, 0, 0) for axis in beside):
        return None
    if not any(overflow(axes) for overflow in (dilated_overflow, gathered_overflow, gathered_stride_overflow)):
        return None
    axis = axes[wide[0]]
    return _Plan(node, axis, wide[0], weight) if axis.stride == 1 and axis.steps > 0 else None


def _apply(plan: _Plan) -> None:
    node, axis = plan.node, plan.axis
    value, width = input_of(node), axis.dilation
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    sizes = sizes_of(value)
    # the one axis last, whichever it was
    value = value if len(sizes) == 3 else make.reshape(value, [*sizes[:2], axis.length], "one_axis")
    whole, rest = divmod(axis.pad_begin, width)
    rows, made_rows = (-(-length // width) for length in (rest + axis.length, axis.steps))
    value = make.filled(value, 2, rest, rows * width - rest - axis.length, rows)
    value = make.reshape(value, [*sizes[:2], rows, width], "columns")
    channels = plan.weight.shape[0]
    weight = make.constant("weight", plan.weight.reshape(*plan.weight.shape[:2], axis.kernel, 1))
    made = make.add(
        "Conv",
        [value, weight, *(bias for bias in node.inputs[2:] if bias is not None)],
        [sizes[0], channels, made_rows, width],
        "conv",
        kernel_shape=[axis.kernel, 1],
        pads=[whole, 0, made_rows + axis.kernel - 1 - whole - rows, 0],
        group=node.attributes.get_int("group", 1),
    )
    made = make.first(make.reshape(made, [sizes[0], channels, made_rows * width], "steps"), 2, axis.steps, "cut")
    if len(sizes) > 3:
        shape = [sizes[0], channels, *(axis.steps if at == plan.place else 1 for at in range(len(sizes) - 2))]
        made = make.reshape(made, shape, "axes")
    take_place(node, made)
