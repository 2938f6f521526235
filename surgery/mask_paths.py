"""Where a constant goes on a graph, and whether its exact size can matter there.

A number far below every score is a mask: it is added to scores, or stands in their place, and the exponential behind
them makes 0 of it. Any number far enough below does the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.convenience import get_const_tensor

from surgery.matching import ONNX_DOMAINS, Matched

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)

MASK = 1e4
"""What a mask becomes. e^-104 is 0 in fp32 (smallest subnormal 2^-149), so that scores within +-4900 of each other are
masked with a wide margin, and six such masks on one score stay within fp16."""

HUGE = 65504.0 / 2
"""From here a constant is a mask of its own: two of them, or one and a score, leave fp16 (65504)."""

FAR = MASK / 2
"""Beyond it a value is masked, short of it a score."""

_LEAST, _MOST = 1e3, HUGE
"""Between which a mask must be where it meets the exponential: below, scores of a few hundred would show through."""

_PLACE = "says which values go where; each is a score or a mask as before"
_WHOLE = "says over which values; the largest of them is a score, not a mask"
_TYPE = "fp16, fp32 and fp64 all hold 1e4"

SHAPING = (
    Matched("Identity"), Matched("Expand"), Matched("Tile"), Matched("Slice"), Matched("Clip"),
    Matched("Unsqueeze", irrelevant={"axes": _PLACE}), Matched("Squeeze", irrelevant={"axes": _PLACE}),
    Matched("Reshape", irrelevant={"allowzero": _PLACE}), Matched("Transpose", irrelevant={"perm": _PLACE}),
    Matched("Flatten", irrelevant={"axis": _PLACE}), Matched("Gather", irrelevant={"axis": _PLACE}),
    Matched("Split", irrelevant=dict.fromkeys(("axis", "split", "num_outputs"), _PLACE)),
)  # fmt: skip
"""Operators whose outputs hold values of their first input and no others."""

PASSING = (
    *SHAPING, Matched("Neg"), Matched("Add"), Matched("Sub"), Matched("Max"), Matched("Sum"), Matched("Mul"),
    Matched("Div"), Matched("Where"),
    Matched("Cast", used=frozenset({"to"}), irrelevant={"saturate": "for fp8 only"}),
    Matched("Concat", irrelevant={"axis": _PLACE}), Matched("Pad", irrelevant={"mode": _PLACE}),
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

_SHAPING, _ENDS = ({matched.op for matched in table} for table in (SHAPING, ENDS))
_JOINING = {"Neg", "Add", "Sub", "Max", "Sum", "Concat"}
_REDUCING = {"LogSoftmax", "ReduceMax"}
_ORDERS = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"}
_TRUTHS = _ORDERS | {"Not", "And", "Or", "Xor", "IsNaN", "IsInf"}


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
    """What lies behind a mask: the comparisons that ask for it by its old value."""

    asked: tuple[ir.Node, ...] = ()


def array_of(value: ir.Value | None) -> NDArray[np.float64] | None:
    """The constant that `value` is, as float64; None where it is none, or no number of these."""
    if value is None or value.is_graph_input():
        return None
    tensor = get_const_tensor(value)
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return None
    return np.asarray(tensor.numpy(), np.float64)


def is_plain(node: ir.Node, operators: Iterable[str]) -> bool:
    """Whether `node` is an ONNX operator of these types."""
    return node.domain in ONNX_DOMAINS and node.op_type in operators


def paths_of(start: Use) -> Paths | None:
    """Follow a mask from `start`; None where one of its ways sees its size, or none comes to an end."""
    todo, seen, asked, ended = [start], {start}, [], False
    while todo:
        use = todo.pop()
        if _asks(use):
            asked.append(use.node)
            continue
        values = _behind(use)
        if values is None:
            return None
        ended |= not values
        for value, least, most in values:
            if value.is_graph_output():
                return None
            following = {Use(node, index, least, most, use.trusting) for node, index in value.uses()}
            todo += following - seen
            seen |= following
    return Paths(tuple(asked)) if ended else None


def _behind(use: Use) -> Sequence[tuple[ir.Value, float, float]] | None:
    """The values that a mask goes on in; none at an end; None where its size matters."""
    node, index = use.node, use.index
    if is_plain(node, _ENDS) or _is_moderate_comparison(use):
        return ()
    if is_plain(node, {"Mul", "Div"}):
        return _scaled(use)
    goes_on = (
        (is_plain(node, _SHAPING | _REDUCING) and index == 0)
        or is_plain(node, _JOINING)
        or (is_plain(node, {"Where"}) and index in (1, 2))
        or (is_plain(node, {"Cast"}) and node.attributes["to"].as_int() in FLOATS)
        or (is_plain(node, {"Pad"}) and index in (0, 2))
    )
    return [(value, use.least, use.most) for value in node.outputs] if goes_on else None


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
    if not is_plain(use.node, _ORDERS):
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


def is_zero_or_one(value: ir.Value | None, trusting: bool = True) -> bool:
    """Whether `value` holds -1, 0 and 1 only, as far as the graph says.

    An input that is taken from one, or one that is taken from it, says that it holds zeros and ones; so does, where
    `trusting`, any input. Parity judges.
    """
    todo, seen = [(value, trusting)], set()
    while todo:
        part, trusted = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        before = _parts(part, trusted)
        if before is None:
            return False
        todo += before
    return True


def _parts(value: ir.Value | None, trusted: bool) -> Sequence[tuple[ir.Value | None, bool]] | None:
    """What must hold zeros and ones for `value` to, and whether an input is trusted there; None where it does not."""
    if value is None:
        return None
    constant = array_of(value)
    if constant is not None:
        return () if bool(np.isin(constant, (-1, 0, 1)).all()) else None
    node = value.producer()
    if value.dtype == ir.DataType.BOOL or (node is not None and is_plain(node, _TRUTHS)):
        return ()
    if node is None:
        return () if trusted else None
    if is_plain(node, {"Sub"}):
        return _complement(node)
    read: Sequence[ir.Value | None] = ()
    if is_plain(node, _SHAPING | {"Cast", "Neg"}):
        read = node.inputs[:1]
    elif is_plain(node, {"Mul", "Concat", "Max"}):
        read = node.inputs
    elif is_plain(node, {"Where"}):
        read = node.inputs[1:]
    return [(part, trusted) for part in read] or None


def _complement(node: ir.Node) -> Sequence[tuple[ir.Value | None, bool]] | None:
    """The mask of 1 - mask or mask - 1."""
    for one, mask in (node.inputs, tuple(reversed(node.inputs))):
        constant = array_of(one)
        if constant is not None and bool((constant == 1).all()):
            return [(mask, True)]
    return None
