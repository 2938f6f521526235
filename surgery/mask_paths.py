"""Where a constant goes on a graph, and whether its exact size can matter there.

A number far below every score is a mask: it is added to scores, or stands in their place, and the exponential behind
them makes 0 of it. Any number far enough below does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.mask_values import (
    FAR,
    FLOATS,
    HUGE,
    MASK,
    ORDERS,
    PLACE,
    SHAPES,
    SHAPING,
    array_of,
    is_plain,
    is_zero_or_one,
)
from surgery.matching import Matched

_LEAST, _MOST = 1e3, HUGE
"""Between which a mask must be where it meets the exponential: below, scores of a few hundred would show through."""

_WHOLE = "says over which values; the largest of them is a score, not a mask"

PASSING = (
    *SHAPING, Matched("Neg"), Matched("Add"), Matched("Sub"), Matched("Max"), Matched("Min"), Matched("Sum"),
    Matched("Mul"), Matched("Div"), Matched("Where"),
    Matched("Cast", used=frozenset({"to"}), irrelevant={"saturate": "for fp8 only"}),
    Matched("Concat", irrelevant={"axis": PLACE}), Matched("Pad", irrelevant={"mode": PLACE}),
    Matched("ScatterND", required={"reduction": "none"}),
    Matched("LogSoftmax", irrelevant={"axis": _WHOLE}),
    Matched("ReduceMax", irrelevant=dict.fromkeys(("axes", "keepdims", "noop_with_empty_axes"), _WHOLE)),
)  # fmt: skip
"""Operators behind which a mask is still a mask."""

ENDS = (
    Matched("Softmax", irrelevant={"axis": _WHOLE}), Matched("Exp"), Matched("Sigmoid"),
    Matched("ArgMax", irrelevant=dict.fromkeys(("axis", "keepdims", "select_last_index"), _WHOLE)),
)  # fmt: skip
"""Operators behind which nothing is left of a mask: e^-1e4 and e^-1e9 are both 0."""

COMPARISONS = (
    Matched("Less"), Matched("Greater"), Matched("Equal"),
    Matched("IsInf", used=frozenset({"detect_negative"}), irrelevant={"detect_positive": "no mask is positive here"}),
)  # fmt: skip
"""Operators that ask whether a value is a mask; so do LessOrEqual and GreaterOrEqual, which opset 11 does not have."""

NORMALISING = (
    Matched("Log"), Matched("MatMul"), Matched("IsNaN"),
    Matched("ReduceSum", irrelevant=dict.fromkeys(("axes", "keepdims", "noop_with_empty_axes"), _WHOLE)),
)  # fmt: skip
"""Operators behind an end that are of the softmax still, or of its product with values; IsNaN asks for its rows."""

_ENDS = frozenset(matched.op for matched in ENDS)
_WITH_NAN = frozenset({"Softmax", "Exp"})
_KEEPING_NAN = SHAPES | {"Cast", "Exp", "Log", "ReduceSum", "Div", "Mul", "MatMul"}
_JOINING = {"Neg", "Add", "Sub", "Max", "Min", "Sum", "Concat"}
_REDUCING = {"LogSoftmax", "ReduceMax"}


@dataclass(frozen=True)
class Use:
    """The input `index` of `node`, where the mask arrives between `least` and `most` times its size.

    `trusting` takes a number that is an input of the graph, and that the mask is multiplied with, for zeros and ones.
    A negative mask may: scores are scaled by positive numbers, if by any so large.
    """

    node: ir.Node
    index: int
    least: float = 1.0
    most: float = 1.0
    trusting: bool = True


@dataclass(frozen=True)
class Paths:
    """What lies behind a mask: the comparisons that ask for it by its old value, and the questions which rows of a
    softmax are NaN, because it left them nothing."""

    asked: tuple[ir.Node, ...] = ()
    rows: tuple[ir.Node, ...] = ()


def paths_of(start: Use) -> Paths | None:
    """Follow a mask from `start`; None where one of its ways sees its size, or none comes to an end."""
    todo, seen, asked, rows, ended = [start], {start}, [], [], False
    while todo:
        use = todo.pop()
        if _asks(use):
            asked.append(use.node)
            continue
        values = _behind(use)
        if values is None:
            return None
        if not values:
            ended = True
            rows += _row_questions(use.node)
        for value, least, most in values:
            if value.is_graph_output():
                return None
            following = {Use(node, index, least, most, use.trusting) for node, index in value.uses()}
            todo += following - seen
            seen |= following
    return Paths(tuple(asked), tuple(dict.fromkeys(rows))) if ended else None


def _row_questions(end: ir.Node) -> list[ir.Node]:
    """What asks which rows behind the softmax or exponential `end` are NaN: IsNaN, or a comparison with itself."""
    if not is_plain(end, _WITH_NAN):
        return []
    todo, seen, found = [end.outputs[0]], {end.outputs[0]}, []
    while todo:
        for node, index in todo.pop().uses():
            if is_plain(node, {"IsNaN"}) or (is_plain(node, {"Equal"}) and node.inputs[0] is node.inputs[1]):
                found.append(node)
            elif is_plain(node, _KEEPING_NAN) and (index == 0 or not is_plain(node, SHAPES)):
                todo += [value for value in node.outputs if value not in seen]
                seen.update(node.outputs)
    return found


def _behind(use: Use) -> Sequence[tuple[ir.Value, float, float]] | None:
    """The values that a mask goes on in; none at an end; None where its size matters."""
    node, index = use.node, use.index
    if is_plain(node, _ENDS) or _is_moderate_comparison(use) or _becomes(node, ir.DataType.BOOL):
        return ()
    if is_plain(node, {"Mul", "Div"}):
        return _scaled(use)
    goes_on = (
        (is_plain(node, SHAPES | _REDUCING) and index == 0)
        or is_plain(node, _JOINING)
        or (is_plain(node, {"Where"}) and index in (1, 2))
        or _becomes(node, *FLOATS)
        or (is_plain(node, {"Pad", "ScatterND"}) and index in (0, 2) and _replaces(node))
    )
    return [(value, use.least, use.most) for value in node.outputs] if goes_on else None


def _becomes(node: ir.Node, *types: ir.DataType) -> bool:
    """Whether `node` casts to one of `types`; as a truth, a mask is true whatever its size."""
    return is_plain(node, {"Cast"}) and node.attributes["to"].as_int() in types


def _replaces(node: ir.Node) -> bool:
    """Whether what `node` writes is not added to or multiplied with what was there."""
    return node.attributes.get_string("reduction", "none") == "none"


def _scaled(use: Use) -> Sequence[tuple[ir.Value, float, float]] | None:
    """Behind a product with a mask of zeros and ones, or a product with or quotient by a constant."""
    node = use.node
    other = node.inputs[1 - use.index]
    factors = array_of(other)
    if factors is None:
        is_mask = node.op_type == "Mul" and is_zero_or_one(other, use.trusting)
        return [(node.outputs[0], use.least, use.most)] if is_mask else None
    if node.op_type == "Div" and (use.index == 1 or not factors.all()):
        return None
    sizes = np.abs(factors[factors != 0])
    if not sizes.size:
        return None
    sizes = 1 / sizes if node.op_type == "Div" else sizes
    least, most = use.least * float(sizes.min()), use.most * float(sizes.max())
    return [(node.outputs[0], least, most)] if least * MASK >= _LEAST and most * MASK <= _MOST else None


def _is_moderate_comparison(use: Use) -> bool:
    """Whether a masked value is compared with a constant short of `FAR`: old and new mask lie on one side of it."""
    if not is_plain(use.node, ORDERS):
        return False
    limit = array_of(use.node.inputs[1 - use.index])
    return limit is not None and bool(np.all(np.abs(limit) <= FAR * use.least))


def _asks(use: Use) -> bool:
    """Whether the node asks which values are the old mask: Equal with it, or IsInf."""
    if use.least != 1 or use.most != 1:
        return False
    if is_plain(use.node, {"IsInf"}):
        return use.node.attributes.get_int("detect_negative", 1) == 1
    if not is_plain(use.node, {"Equal"}):
        return False
    limit = array_of(use.node.inputs[1 - use.index])
    return limit is not None and limit.size == 1 and bool(np.all(limit <= -HUGE))
