"""Whether a tensor is finite, as far as the graph shows: no infinity stands behind a mask in it, nor a NaN.

A product with zero makes NaN of both, where a choice would leave them out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from surgery.graph import holds
from surgery.mask_values import PLACE, SHAPING, array_of, is_plain
from surgery.matching import Matched

_FINITE = "finite numbers in, finite numbers out, whatever it is"

_PASSING = (
    *SHAPING,
    *(Matched(op) for op in ("Add", "Max", "Min", "Mul", "Neg", "Relu", "Sub", "Sum", "Where")),
    Matched("Cast", irrelevant=dict.fromkeys(("to", "saturate"), _FINITE)),
    Matched("Concat", irrelevant={"axis": PLACE}),
    Matched("Pad", irrelevant={"mode": PLACE}),
)
"""Operators that are finite where what they read is."""

_CONVOLVING = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")

_LAYERS = (
    *(Matched(op) for op in ("MatMul", "Sigmoid", "Tanh")),
    Matched("Conv", irrelevant=dict.fromkeys(_CONVOLVING, _FINITE)),
    Matched("ConvTranspose", irrelevant=dict.fromkeys((*_CONVOLVING, "output_padding", "output_shape"), _FINITE)),
    Matched("Einsum", irrelevant={"equation": _FINITE}),
    Matched("Gemm", irrelevant=dict.fromkeys(("alpha", "beta", "transA", "transB"), _FINITE)),
    Matched("LayerNormalization", irrelevant=dict.fromkeys(("axis", "epsilon", "stash_type"), _FINITE)),
    Matched("Softmax", irrelevant={"axis": _FINITE}),
)
"""Operators that mix values, or bound them: what is not finite behind them is so where nothing is masked too."""

FINITE = (*_PASSING, *_LAYERS, Matched("Div"))
"""What is looked through, and where the walk ends; of a Div, where the divisor is a constant without a zero."""

_THROUGH = frozenset(matched.op for matched in _PASSING)
_ENDS = frozenset(matched.op for matched in _LAYERS)

_WHOLE = (ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64)
"""Of these no value is infinite."""


def is_finite(value: ir.Value | None) -> bool:
    """Whether `value` is made of layers, inputs and finite constants by operators that make no infinity of them."""
    return holds(value, _parts)


def _parts(value: ir.Value | None) -> Sequence[ir.Value | None] | None:
    """What must be finite for `value` to be; None where it may not be."""
    known, node = array_of(value), None if value is None else value.producer()
    if known is not None:
        return () if bool(np.isfinite(known).all()) else None
    if value is None or node is None:
        return ()  # left out; or an input, whose values are finite or no gate passes
    if is_plain(node, _THROUGH):
        return node.inputs
    if is_plain(node, {"Div"}):
        divisor = array_of(node.inputs[1])
        is_sound = divisor is not None and divisor.all() and np.isfinite(divisor).all()
        return node.inputs[:1] if is_sound else None
    return () if is_plain(node, _ENDS) or value.dtype in _WHOLE else None
