"""What masks are made of: constants far below every score, zeros and ones, and choices from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.graph import holds
from surgery.matching import ONNX_DOMAINS, Matched
from surgery.weights import tensor_of

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)

MASK = 1e4
"""What a mask becomes. e^-104 is 0 in fp32 (smallest subnormal 2^-149), so that scores within +-4900 of each other are
masked with a wide margin, and six such masks on one score stay within fp16."""

HUGE = 65504.0 / 2
"""From here a constant is a mask of its own: two of them, or one and a score, leave fp16 (65504)."""

FAR = MASK / 2
"""Beyond it a value is masked, short of it a score."""

PLACE = "says which values go where; each is a score or a mask as before"
"""Why an attribute of a moving operator does not matter."""

SHAPING = (
    Matched("Identity"), Matched("Expand"), Matched("Tile"), Matched("Slice"), Matched("Clip"),
    Matched("Unsqueeze", irrelevant={"axes": PLACE}), Matched("Squeeze", irrelevant={"axes": PLACE}),
    Matched("Reshape", irrelevant={"allowzero": PLACE}), Matched("Transpose", irrelevant={"perm": PLACE}),
    Matched("Flatten", irrelevant={"axis": PLACE}), Matched("Gather", irrelevant={"axis": PLACE}),
    Matched("Split", irrelevant=dict.fromkeys(("axis", "split", "num_outputs"), PLACE)),
)  # fmt: skip
"""Operators whose outputs hold values of their first input and no others."""

SHAPES = frozenset(matched.op for matched in SHAPING)
"""Their names."""

ORDERS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})
"""Operators that compare two numbers."""

_TRUTHS = ORDERS | {"Not", "And", "Or", "Xor", "IsNaN", "IsInf"}


def array_of(value: ir.Value | None) -> NDArray[np.float64] | None:
    """The constant that `value` is, as float64; None where it is none, or no number of these."""
    tensor = tensor_of(value)
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return None
    return np.asarray(tensor.numpy(), np.float64)


def is_plain(node: ir.Node, operators: Iterable[str]) -> bool:
    """Whether `node` is an ONNX operator of these types."""
    return node.domain in ONNX_DOMAINS and node.op_type in operators


def is_zero_or_one(value: ir.Value | None, trusting: bool = True) -> bool:
    """Whether `value` holds -1, 0 and 1 only, as far as the graph says.

    An input that is taken from one, or one that is taken from it, says that it holds zeros and ones; so does, where
    `trusting`, any input. Parity judges.
    """
    return holds((value, trusting), lambda part: _parts(*part))


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
    if is_plain(node, SHAPES | {"Cast", "Neg"}):
        read = node.inputs[:1]
    elif is_plain(node, {"Mul", "Concat", "Max"}):
        read = node.inputs
    elif is_plain(node, {"Where"}):
        read = node.inputs[1:]
    return [(part, trusted) for part in read] or None


def is_mask(value: ir.Value | None) -> bool:
    """Whether `value` is made of constants, chosen, added, or multiplied with zeros and ones."""
    return holds(value, _mask_parts)


def _mask_parts(value: ir.Value | None) -> Sequence[ir.Value | None] | None:
    """What must be a mask for `value` to be one; None where it is none."""
    if array_of(value) is not None:
        return ()
    node = None if value is None else value.producer()
    if node is None:
        return None
    if is_plain(node, SHAPES | {"Cast"}):
        return node.inputs[:1]
    if is_plain(node, {"Where"}):
        return node.inputs[1:]
    if is_plain(node, {"Add"}):
        return node.inputs
    scaled = is_plain(node, {"Mul"}) and all(array_of(v) is not None or is_zero_or_one(v) for v in node.inputs)
    return () if scaled else None


def _complement(node: ir.Node) -> Sequence[tuple[ir.Value | None, bool]] | None:
    """The mask of 1 - mask or mask - 1."""
    for one, mask in (node.inputs, tuple(reversed(node.inputs))):
        constant = array_of(one)
        if constant is not None and bool((constant == 1).all()):
            return [(mask, True)]
    return None
