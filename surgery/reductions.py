"""Reductions over known axes: which those are, and the form that an opset wants."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from surgery.graph import input_at
from surgery.splice import Draft, whole_numbers
from surgery.weights import weight_of

AXES_ARE_INPUTS = 18
"""From this opset on the axes of ReduceMean and its like are an input (ONNX changelog); those of ReduceSum since 13."""


def reduced(draft: Draft, op: str, values: ir.Value | None, axes: Sequence[int], opset: int) -> ir.Value:
    """`values` reduced by `op`, which is not ReduceSum, over `axes`; they stay, as axes of one."""
    if opset >= AXES_ARE_INPUTS:
        return draft.add(op, values, whole_numbers(axes), keepdims=1)
    return draft.add(op, values, axes=list(axes), keepdims=1)


def keeps_axes(node: ir.Node) -> bool:
    """Whether the axes that `node`, a reduction, reduces stay as axes of one."""
    return bool(node.attributes.get_int("keepdims", 1))


def reduced_axes(node: ir.Node, rank: int) -> tuple[int, ...] | None:
    """The axes that `node`, a reduction, reduces, from the front, sorted; every one where none is stated.

    None where they are computed, or none at all.
    """
    given = input_at(node, 1)
    weight = weight_of(given)
    if given is not None and weight is None:
        return None
    stated = (
        node.attributes["axes"].as_ints() if "axes" in node.attributes else () if weight is None else weight.tolist()
    )
    if not stated:
        return None if node.attributes.get_int("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in stated)) if rank else None
