"""Rewrite a pool over an axis that is longer than the pooling unit's fields hold.

Before: y = MaxPool(x) or AveragePool(x), x [N, C, T], T > 8192
After:  where the windows stand side by side (kernel = stride, no pads): x as rows [N, C, R, T / R], pooled along the
        rows, and joined again; else x cut into parts that overlap as the windows do, each pooled, and concatenated

Rows cost nothing (the same bytes) and log nothing. The parts' slices of a long axis log 0x5048, of which engines are
known that run; the pool itself would log 0x600c, 0x6018, 0x6024 and 0x700c, of which nothing is known (measured,
2.3.2, rk3588).

Left alone: what fits, kernels that are too long for the unit (CPU, or a Conv), two axes, dilations, a rounded-up
length, indices (the gate `structure.fields` and the log judge those).

Exact: every output is the same window's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx_ir as ir

from contracts.convolution_fields import (
    LONGEST_AVERAGE_POOL,
    LONGEST_MAX_POOL,
    POOLED_LIMIT,
    Axis,
    pooled_overflow,
)
from surgery.conv_axes import axes_of
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes

_USED = frozenset({"ceil_mode", "dilations", "kernel_shape", "pads", "strides"})
_EXPLICIT = {"auto_pad": "NOTSET or VALID"}

POOLS = (
    Matched("AveragePool", used=_USED, required=_EXPLICIT, irrelevant={"count_include_pad": "only without pads"}),
    Matched("MaxPool", used=_USED, required=_EXPLICIT, irrelevant={"storage_order": "of indices, which are not made"}),
)

DECLARATION = Declaration(
    name="rewrite_long_pool",
    summary="a pool over more than 8192 steps, cut into rows or parts that the pooling unit holds",
    exactness=Exact("every output is the same window's"),
    after=frozenset(
        {
            "decompose_missing_kernels",
            "fold_constants",
            "normalise_auto_pad",
            "normalise_static_inputs",
            "rewrite_strided_average_pool",
        }
    ),
    matches=POOLS,
)


def rewrite_long_pool() -> Pass:
    """The pass; its hits are pools."""

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _is_pool, _plan, _apply))


@dataclass(frozen=True)
class _Plan:
    """A pool, and its one axis, which is too long."""

    node: ir.Node
    axis: Axis


def _is_pool(node: ir.Node) -> bool:
    return is_one_of(node, POOLS)


def _plan(node: ir.Node) -> _Plan | None:
    if node.attributes.get_int("ceil_mode", 0) != 0 or len(node.outputs) != 1:
        return None
    axes = axes_of(node)
    if isinstance(axes, Refused) or len(axes) != 1 or axes[0].steps < 1 or not pooled_overflow(axes):
        return None
    axis = axes[0]
    if node.op_type == "AveragePool":
        fits = max(axis.kernel, axis.stride) <= LONGEST_AVERAGE_POOL and not axis.pad_begin and not axis.pad_end
    else:
        fits = axis.kernel <= LONGEST_MAX_POOL
    return _Plan(node, axis) if fits and axis.dilation == 1 and axis.kernel > 1 else None


def _apply(plan: _Plan) -> None:
    node, axis = plan.node, plan.axis
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    rows = _rows(axis)
    take_place(node, _in_rows(make, node, axis, rows) if rows else _in_parts(make, node, axis))


def _rows(axis: Axis) -> int:
    """The fewest rows of whole windows that fit; 0 where there are none."""
    if axis.kernel != axis.stride or axis.pad_begin or axis.pad_end:
        return 0
    least = -(-axis.steps * axis.stride // POOLED_LIMIT)
    return next((rows for rows in range(least, POOLED_LIMIT + 1) if axis.steps % rows == 0), 0)


def _in_rows(make: Builder, node: ir.Node, axis: Axis, rows: int) -> ir.Value:
    batch, channels, _ = sizes_of(input_of(node))
    value = make.first(input_of(node), 2, axis.steps * axis.stride, "whole")
    value = make.reshape(value, [batch, channels, rows, axis.steps * axis.stride // rows], "rows")
    sizes = [batch, channels, rows, axis.steps // rows]
    value = make.add(node.op_type, [value], sizes, "pooled", kernel_shape=[1, axis.kernel], strides=[1, axis.stride])
    return make.reshape(value, [batch, channels, axis.steps], "joined")


def _in_parts(make: Builder, node: ir.Node, axis: Axis) -> ir.Value:
    batch, channels, _ = sizes_of(input_of(node))
    each = (POOLED_LIMIT - axis.kernel) // axis.stride + 1
    parts = []
    for number, first in enumerate(range(0, axis.steps, each)):
        steps = min(each, axis.steps - first)
        begin = first * axis.stride - axis.pad_begin
        end = begin + (steps - 1) * axis.stride + axis.kernel
        part = replace(axis, pad_begin=max(0, -begin), pad_end=max(0, end - axis.length))
        start, stop = begin + part.pad_begin, end - part.pad_end
        bounds = [make.sizes(f"{what}{number}", [at]) for what, at in (("start", start), ("stop", stop), ("axis", 2))]
        value = make.add("Slice", [input_of(node), *bounds], [batch, channels, stop - start], f"part{number}")
        pads = [part.pad_begin, part.pad_end]
        sizes = [batch, channels, steps]
        parts.append(
            make.add(
                node.op_type,
                [value],
                sizes,
                f"pooled{number}",
                kernel_shape=[axis.kernel],
                strides=[axis.stride],
                pads=pads,
            )
        )
    return make.add("Concat", parts, [batch, channels, axis.steps], "joined", axis=2)
