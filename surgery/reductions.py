"""Reductions over known axes, in the form that an opset wants."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from surgery.splice import Draft, whole_numbers

AXES_ARE_INPUTS = 18
"""From this opset on the axes of ReduceMean and its like are an input (ONNX changelog); those of ReduceSum since 13."""


def reduced(draft: Draft, op: str, values: ir.Value | None, axes: Sequence[int], opset: int) -> ir.Value:
    """`values` reduced by `op`, which is not ReduceSum, over `axes`; they stay, as axes of one."""
    if opset >= AXES_ARE_INPUTS:
        return draft.add(op, values, whole_numbers(axes), keepdims=1)
    return draft.add(op, values, axes=list(axes), keepdims=1)
