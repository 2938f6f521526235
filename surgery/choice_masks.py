"""What the condition of a Where is made of: the mask of zeros and ones whose one value it is true for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.graph import holds, input_of
from surgery.mask_values import ORDERS, SHAPES, SHAPING, array_of, is_plain
from surgery.matching import Matched

_TO = "bool to float makes zeros and ones of any float type"

CONDITIONS = (
    *(Matched(op) for op in (*sorted(ORDERS), "Not", "Mul")),
    Matched("Cast", irrelevant={"to": _TO, "saturate": _TO}),
    *SHAPING,
)
"""What is looked through; every other condition is a mask itself."""

_ORDERS: Mapping[str, Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}

_MOVING = SHAPES - {"Clip"}
"""Operators whose outputs hold values of their first input; Clip has bounds of its own."""


@dataclass(frozen=True)
class ChoiceMask:
    """A mask of zeros and ones, of any type, and whether a condition is true where it is one (or else where zero)."""

    value: ir.Value
    of_ones: bool


def choice_mask(condition: ir.Value) -> ChoiceMask:
    """The mask that says the same as `condition`, with as few comparisons left to compute as the graph allows.

    It has the shape of `condition`, or one that is broadcast to it. The types of the graph are inferred.
    """
    value, of_ones = condition, True
    while value.dtype is not ir.DataType.FLOAT and (node := value.producer()) is not None:
        if is_plain(node, {"Not"}):
            value, of_ones = input_of(node), not of_ones
        elif is_plain(node, {"Expand", "Identity"}) or (is_plain(node, {"Cast"}) and is_truth(input_of(node))):
            value = input_of(node)
        else:
            compared = _compared(node)
            if compared is None:
                break
            value, of_ones = compared.value, compared.of_ones is of_ones
    return ChoiceMask(value, of_ones)


def _compared(node: ir.Node) -> ChoiceMask | None:
    """The mask that `node` compares with a number so that the answer is another for its zeros than for its ones."""
    if not is_plain(node, _ORDERS):
        return None
    for place, mask in enumerate(node.inputs):
        number = array_of(node.inputs[1 - place])
        if mask is None or number is None or number.size != 1 or not is_truth(mask):
            continue
        compared = (np.array([0.0, 1.0]), number.reshape(-1))
        of_zeros, of_ones = _ORDERS[node.op_type](*(compared if place == 0 else reversed(compared)))
        return ChoiceMask(mask, bool(of_ones)) if of_zeros != of_ones else None
    return None


def is_truth(value: ir.Value) -> bool:
    """Whether `value` holds zeros and ones, as the graph shows: what is made of booleans, and products of it.

    Stricter than `mask_values.is_zero_or_one`, which trusts inputs: who calls this has no other proof.
    """
    return holds(value, _truths)


def _truths(value: ir.Value) -> Sequence[ir.Value] | None:
    """What must hold zeros and ones for `value` to; None where it does not."""
    known, node = array_of(value), value.producer()
    if known is not None:
        return () if bool(np.isin(known, (0, 1)).all()) else None
    if value.dtype is ir.DataType.BOOL or (node is not None and is_plain(node, ORDERS)):
        return ()
    if node is not None and is_plain(node, {"Mul"}):
        return [read for read in node.inputs if read is not None]
    if node is not None and is_plain(node, _MOVING | {"Cast"}):
        return (input_of(node),)
    return None
