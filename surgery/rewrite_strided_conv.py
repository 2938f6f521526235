"""Rewrite a convolution whose stride the hardware's field cannot hold: space to depth along the axis.

Before: y = Conv(x), x [N, C, T], stride s (9, 11, 13, 15, 30, 60, ...), kernel k
After:  y = Conv(Reshape(Transpose(Reshape(x)))), [N, C, T/f, f] -> [N, C, f, T/f] -> [N, C f, T/f], stride s/f, and the
        weights' taps spread over the blocks (`surgery.time_blocks` has the algebra)

The stride's field holds 7; build and simulator are right all the same, and the board is not (REGTASK, offset 0x1014).
f is the divisor of s that costs least by the compiler's own model. Where T is no multiple of f, zeros are appended (a
Concat stays on the NPU, a Pad goes to the CPU), or steps that no output reads are cut off. Several axes: one after
another. Of the orders of this shuffle the one here moves the fewest bytes (measured, 2.3.2: stride 15, 18 channels, 424
KB a layer against 829 for the compiler's own), and groups stay whole in it.

Left alone: strides that the compiler makes fit, and those that it cuts itself (`contracts.convolution_fields`).

Exact: the same products in the same sum, besides products with zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.convolution_fields import Axis, overflowing, stride_holds
from surgery import conv_axes
from surgery.block_shuffle import to_depth
from surgery.conv_axes import CONV, axes_of
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_at, input_of
from surgery.graph_builder import Builder
from surgery.graph_constants import add_constant
from surgery.matching import is_one_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.scopes import drop_unused_weights
from surgery.time_blocks import best_blocks, spread
from surgery.weights import weight_of

CONSTANT_WEIGHTS = "constant weights"

DECLARATION = Declaration(
    name="rewrite_strided_conv",
    summary="a convolution whose stride the hardware's field cannot hold, over blocks of its input",
    exactness=Exact("the same products in the same sum, besides products with zero"),
    after=frozenset(
        {
            "decompose_quantised",
            "fold_constants",
            "normalise_auto_pad",
            "normalise_static_inputs",
            "rewrite_strided_average_pool",
        }
    ),
    matches=(CONV,),
    preconditions=(*conv_axes.PRECONDITIONS, CONSTANT_WEIGHTS),
)


@dataclass(frozen=True)
class _Plan:
    """A convolution, its axes, its weights, and which of its axes to cut."""

    node: ir.Node
    axes: tuple[Axis, ...]
    weight: NDArray[np.generic]
    cut: tuple[int, ...]


def rewrite_strided_conv() -> Pass:
    """The pass; its hits are convolutions."""

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _strided, _plan, _apply))


def _strided(node: ir.Node) -> bool:
    return is_one_of(node, (CONV,)) and not all(map(stride_holds, node.attributes.get_ints("strides") or ()))


def _plan(node: ir.Node) -> _Plan | Refused | None:
    """What to cut; None where the compiler makes every stride fit, or the convolution makes nothing."""
    axes = axes_of(node)
    if isinstance(axes, Refused):
        return axes
    cut = overflowing(axes)
    if not cut or any(axis.steps < 1 for axis in axes):
        return None
    weight = weight_of(input_at(node, 1))
    if weight is None:
        strides = ", ".join(str(axes[place].stride) for place in cut)
        got = f"stride {strides} and weights '{input_of(node, 1).name}' that are computed"
        limit = "a weight in the file, or a stride that the hardware's field holds,"
        return Refused(node_label(node), CONSTANT_WEIGHTS, limit, got)
    return _Plan(node, axes, weight, cut)


def _apply(plan: _Plan) -> None:
    node, axes, weight = plan.node, list(plan.axes), plan.weight
    graph, value, old = graph_of(node), input_of(node), input_of(node, 1)
    name = f"{DECLARATION.name}/{node.outputs[0].name}"
    for place in plan.cut:
        blocks = best_blocks(axes[place], weight.shape[1])
        value = to_depth(Builder(graph, node, f"{name}/axis{place}"), value, place, blocks)
        weight, axes[place] = spread(weight, place, blocks), blocks.axis
    node.replace_input_with(0, value)
    node.replace_input_with(1, add_constant(graph, f"{name}/weight", weight, old.dtype))
    pads = [*(axis.pad_begin for axis in axes), *(axis.pad_end for axis in axes)]
    for attribute, sizes in {
        "kernel_shape": [axis.kernel for axis in axes],
        "strides": [axis.stride for axis in axes],
        "dilations": [axis.dilation for axis in axes],
        "pads": pads,
    }.items():
        node.attributes.add(ir.AttrInt64s(attribute, sizes))
    node.attributes.pop("auto_pad", None)
    drop_unused_weights(graph, [old] if old.is_initializer() else [])
