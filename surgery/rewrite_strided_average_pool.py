"""Rewrite an average pool whose stride the hardware's field cannot hold as the convolution it becomes anyway.

Before: y = AveragePool(x), kernel k, stride s (9, 11, 13, ...), no pads
After:  y = Conv(x) with weights of 1/k and the same stride; along one axis over x [N, 1, C, T], one channel of C rows,
        and along more as a depthwise convolution

The compiler makes a depthwise Conv of such a pool itself, and its stride overflows (measured, 2.3.2); as a Conv,
`rewrite_strided_conv` takes it. Over rows of one channel its blocks cost less than a block for every channel (layer
table of rk3588, kernel and stride 60, 64 channels: 118 k cycles and 2.6 MB against 121 k and 3.6).

Left alone: strides that fit, pads (such a pool runs on the CPU), a rounded-up length, other types than fp32.

Exact: the mean as a sum of products with 1/k.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from contracts.convolution_fields import Axis, overflowing, stride_holds
from surgery.conv_axes import axes_of, numbers
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes

AVERAGE_POOL = Matched(
    "AveragePool",
    used=frozenset({"ceil_mode", "dilations", "kernel_shape", "pads", "strides"}),
    required={"auto_pad": "NOTSET or VALID"},
    irrelevant={"count_include_pad": "there are no pads"},
)

DECLARATION = Declaration(
    name="rewrite_strided_average_pool",
    summary="an average pool whose stride the hardware's field cannot hold, as a convolution",
    exactness=Exact("the mean as a sum of products with one over the number of taps"),
    after=frozenset({"decompose_missing_kernels", "fold_constants", "normalise_auto_pad", "normalise_static_inputs"}),
    matches=(AVERAGE_POOL,),
)


def rewrite_strided_average_pool() -> Pass:
    """The pass; its hits are pools."""

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _strided, _plan, _apply))


def _strided(node: ir.Node) -> bool:
    return is_one_of(node, (AVERAGE_POOL,)) and not all(map(stride_holds, numbers(node, "strides", [1])))


@dataclass(frozen=True)
class _Plan:
    """A pool, and its axes."""

    node: ir.Node
    axes: tuple[Axis, ...]


def _plan(node: ir.Node) -> _Plan | None:
    axes = axes_of(node) if node.attributes.get_int("ceil_mode", 0) == 0 else ()
    if isinstance(axes, Refused) or not overflowing(axes):
        return None
    padded = any(axis.pad_begin or axis.pad_end for axis in axes)
    exact = input_of(node).dtype == ir.DataType.FLOAT  # one over the taps is none in fp16
    return _Plan(node, axes) if exact and not padded and all(axis.steps > 0 for axis in axes) else None


def _apply(plan: _Plan) -> None:
    node, axes = plan.node, plan.axes
    value = input_of(node)
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    batch, channels, *lengths = sizes_of(value)
    steps = [axis.steps for axis in axes]
    in_rows = len(axes) == 1
    if in_rows:
        value = make.reshape(value, [batch, 1, channels, *lengths], "rows")
        axes = (Axis(channels, 1), *axes)
    kernel = [axis.kernel for axis in axes]
    weight = np.full((1 if in_rows else channels, 1, *kernel), 1 / prod(kernel), np.float32)
    made = make.add(
        "Conv",
        [value, make.constant("weight", weight)],
        [batch, 1, channels, *steps] if in_rows else [batch, channels, *steps],
        "conv",
        kernel_shape=kernel,
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
        group=1 if in_rows else channels,
    )
    take_place(node, make.reshape(made, [batch, channels, *steps], "pooled") if in_rows else made)
