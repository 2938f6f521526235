"""What operators without a kernel on the board are made of, element by element.

Each builder drafts what stands for a node, from operators that have a kernel (measured, rknn-toolkit2 2.3.2, rk3588).
None means that this node is left as it is: the gate `structure.operators` then says that it has no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import onnx_ir as ir

from surgery.graph import input_at
from surgery.opset_raise import dtype_of
from surgery.splice import Draft, constant
from surgery.weights import tensor_of

Builder = Callable[[ir.Node, Draft, int], "ir.Value | None"]
"""Takes the node, the draft and the graph's opset (13 to 19)."""

SIGNED = frozenset({ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64})
"""Types that Neg and Max both have in onnxruntime and in the toolkit."""


def number(node: ir.Node, value: float) -> ir.Value:
    """A scalar of the type that `node` works in."""
    return constant(value, dtype_of(node))


def given(node: ir.Node, place: int = 0) -> ir.Value:
    """The input at `place`, which the operator must have."""
    value = node.inputs[place]
    assert value is not None
    return value


def _float(node: ir.Node, name: str, absent: float) -> float:
    return node.attributes[name].as_float() if name in node.attributes else absent


def _min(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """min(a, b, ...) = -max(-a, -b, ...)."""
    if dtype_of(node) not in SIGNED:
        return None
    return draft.add("Neg", draft.add("Max", *(draft.add("Neg", value) for value in node.inputs)))


def _mean(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """The sum over how many there are."""
    values = [value for value in node.inputs if value is not None]
    total = reduce(lambda one, other: draft.add("Add", one, other), values)
    return draft.add("Mul", total, number(node, 1 / len(values)))


def _softsign(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """x / (1 + |x|)."""
    x = given(node)
    return draft.add("Div", x, draft.add("Add", draft.add("Abs", x), number(node, 1.0)))


SELU_ALPHA, SELU_GAMMA = 1.6732632423543772, 1.0507009873554805
"""ONNX's defaults."""


def _selu(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """gamma * elu(x), elu with alpha."""
    elu = draft.add("Elu", given(node), alpha=_float(node, "alpha", SELU_ALPHA))
    return draft.add("Mul", elu, number(node, _float(node, "gamma", SELU_GAMMA)))


def _celu(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """alpha * elu(x / alpha), alpha above 0."""
    alpha = _float(node, "alpha", 1.0)
    if alpha <= 0:
        return None
    if alpha == 1.0:
        return draft.add("Elu", given(node))
    elu = draft.add("Elu", draft.add("Mul", given(node), number(node, 1 / alpha)))
    return draft.add("Mul", elu, number(node, alpha))


def _mish(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """x * tanh(softplus(x))."""
    return draft.add("Mul", given(node), draft.add("Tanh", draft.add("Softplus", given(node))))


def _shrink(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """x - bias above lambd, x + bias below -lambd, 0 between."""
    if dtype_of(node) not in SIGNED:
        return None
    x, bias, edge = given(node), _float(node, "bias", 0.0), _float(node, "lambd", 0.5)
    below = draft.add("Less", x, number(node, -edge))
    low = draft.add("Where", below, draft.add("Add", x, number(node, bias)), number(node, 0))
    above = draft.add("Greater", x, number(node, edge))
    return draft.add("Where", above, draft.add("Sub", x, number(node, bias)), low)


def _sign(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """[x > 0] - [x < 0]."""
    kind = dtype_of(node)
    if kind not in SIGNED:
        return None
    sides = [draft.add("Cast", draft.add(op, given(node), number(node, 0)), to=int(kind)) for op in ("Greater", "Less")]
    return draft.add("Sub", *sides)


def _is_nan(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """x != x."""
    return draft.add("Not", draft.add("Equal", given(node), given(node)))


def _or(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """not (not a and not b)."""
    return draft.add("Not", draft.add("And", *(draft.add("Not", value) for value in node.inputs)))


def _xor(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """(a or b) and not (a and b)."""
    either = _or(node, draft, opset)
    return draft.add("And", either, draft.add("Not", draft.add("And", *node.inputs)))


def _ceil(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """-floor(-x)."""
    return draft.add("Neg", draft.add("Floor", draft.add("Neg", given(node))))


def _cosh(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """(e^x + e^-x) / 2."""
    grown = draft.add("Exp", given(node))
    total = draft.add("Add", grown, draft.add("Exp", draft.add("Neg", given(node))))
    return draft.add("Mul", total, number(node, 0.5))


def _sinh(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """tanh(x) cosh(x), which cancels nothing near 0 as e^x - e^-x does."""
    return draft.add("Mul", draft.add("Tanh", given(node)), _cosh(node, draft, opset))


def _tan(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """sin x / cos x."""
    return draft.add("Div", draft.add("Sin", given(node)), draft.add("Cos", given(node)))


def _cast_like(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """A Cast to the type of the second input."""
    kind = given(node, 1).dtype
    return None if kind is None else draft.add("Cast", given(node), to=int(kind))


def _trilu(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """What is in the triangle, 0 elsewhere; chosen, not multiplied: -inf times 0 is NaN."""
    x = given(node)
    diagonal = input_at(node, 1)
    offset = tensor_of(diagonal)
    if (diagonal is not None and offset is None) or x.shape is None or len(x.shape) < 2:
        return None
    rows, columns = x.shape[-2], x.shape[-1]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    triangle = np.triu if "upper" not in node.attributes or node.attributes["upper"].as_int() else np.tril
    ones = np.ones((rows, columns), np.bool_)
    kept = constant(triangle(ones, 0 if offset is None else int(offset.numpy())), ir.DataType.BOOL)
    if dtype_of(node) is ir.DataType.BOOL:
        return draft.add("And", kept, x)
    return draft.add("Where", kept, x, number(node, 0))


ELEMENTWISE: Mapping[str, Builder] = {
    "CastLike": _cast_like,
    "Ceil": _ceil,
    "Celu": _celu,
    "Cosh": _cosh,
    "IsNaN": _is_nan,
    "Mean": _mean,
    "Min": _min,
    "Mish": _mish,
    "Or": _or,
    "Selu": _selu,
    "Shrink": _shrink,
    "Sign": _sign,
    "Sinh": _sinh,
    "Softsign": _softsign,
    "Tan": _tan,
    "Trilu": _trilu,
    "Xor": _xor,
}
"""Builders by operator."""
