"""The constant that a node multiplies, divides or shifts its other input by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.linear_layers import Array
from surgery.matching import Matched, is_one_of
from surgery.weights import tensor_of, weight_of


@dataclass(frozen=True)
class Operand:
    """One input of a node of two, `value`, at `place`; and the other, a constant that leaves its shape as it is.

    `values` is the constant with one number along each axis on which it does not vary; of rank 0 where it is one number
    in all. Exporters write constants as large as what they change.
    """

    value: ir.Value
    values: Array
    place: int


def operand_of(node: ir.Node, operators: tuple[Matched, ...]) -> Operand | None:
    """What `node`, one of `operators`, makes of which value; None where it reads no float32 constant, or two.

    None too where it is not known that the value keeps its shape.
    """
    if not may_have_operand(node, operators):
        return None
    place = 0 if tensor_of(node.inputs[0]) is None else 1
    value, values = node.inputs[place], weight_of(node.inputs[1 - place])
    if value is None or values is None or values.dtype != np.float32 or not np.all(np.isfinite(values)):
        return None
    if values.ndim and not _fits(values.shape, value.shape):
        return None
    return Operand(value, _narrowed(values), place)


def may_have_operand(node: ir.Node, operators: tuple[Matched, ...]) -> bool:
    """Whether `node` is one of `operators` on a constant and another value; asks for no shape."""
    if not is_one_of(node, operators) or len(node.inputs) != 2 or node.attributes:  # before opset 7 they place the axes
        return False
    first, second = (tensor_of(value) is None for value in node.inputs)
    return first is not second


def _fits(sizes: tuple[int, ...], of: ir.Shape | None) -> bool:
    """Whether a constant of these sizes leaves a tensor of the shape `of` as large as it is."""
    if of is None or len(of) < len(sizes):
        return False
    return all(size in (1, known) for size, known in zip(sizes[::-1], tuple(of)[::-1], strict=False))


def _narrowed(values: Array) -> Array:
    for axis, size in enumerate(values.shape):
        first = values.take([0], axis) if size else values
        if size > 1 and np.all(values == first):
            values = first
    return values.reshape(()) if values.size == 1 else values
