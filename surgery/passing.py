"""Which tensor a value repeats: nodes that change nothing are looked through, as the toolkit does."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.graph import input_at
from surgery.inferred import static_shape
from surgery.matching import ONNX_DOMAINS
from surgery.weights import tensor_of

_KEEPS_ORDER = frozenset({"Identity", "Dropout", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Cast", "CastLike"})
"""The values of their first input in their order; of another shape, or of another type, maybe."""

_KEEPS_WHERE_SHAPE_KEEPS = frozenset({"Expand", "Tile"})
"""The first input itself where its shape is kept."""

_OF_ONE = frozenset({"Concat", "Sum", "Max", "Min", "Mean"})
"""The first input itself where it is the only one."""

_NEUTRAL = {"Mul": 1.0, "Div": 1.0, "Pow": 1.0, "Add": 0.0, "Sub": 0.0}
"""The second input that gives back the first."""

_COMMUTES = frozenset({"Mul", "Add"})


def passed_value(value: ir.Value, known: dict[str, ir.Value]) -> ir.Value:
    """The farthest tensor that `value` repeats: same values, order, shape and type; `value` itself where none does.

    Args:
        value: of the main graph.
        known: the values of the graph with their shapes and types, by name.
    """
    found, at = value, value
    while (source := _source(at, known)) is not None:
        at = source
        if _kind(at, known) == _kind(value, known):
            found = at
    return found


def _source(value: ir.Value, known: dict[str, ir.Value]) -> ir.Value | None:
    """What `value` holds the values of, in their order, one node back."""
    node = value.producer()
    if node is None or node.domain not in ONNX_DOMAINS or not node.inputs or value is not node.outputs[0]:
        return None
    first = node.inputs[0]
    if first is None:
        return None
    if node.op_type in ("Cast", "CastLike") and _kind(first, known)[1] != _kind(value, known)[1]:
        return None
    if node.op_type in _KEEPS_ORDER or (node.op_type in _OF_ONE and len(node.inputs) == 1):
        return first
    shape = _kind(value, known)[0]
    if node.op_type in _KEEPS_WHERE_SHAPE_KEEPS and shape is not None and _kind(first, known)[0] == shape:
        return first
    if node.op_type == "Transpose":
        return _transposed(node, first, known)
    if node.op_type in _NEUTRAL and len(node.inputs) == 2 and shape is not None:
        return _not_neutral(node, shape, known)
    return _untouched(node, first, known)


def _kind(value: ir.Value, known: dict[str, ir.Value]) -> tuple[tuple[int, ...] | None, ir.DataType | None]:
    there = known.get(str(value.name), value)
    return static_shape(there), there.dtype


def _transposed(node: ir.Node, first: ir.Value, known: dict[str, ir.Value]) -> ir.Value | None:
    """What a Transpose gives back: its input where only axes of size 1 move, or what another one turned before."""
    shape = _kind(first, known)[0]
    if shape is None:
        return None
    perm = _permutation(node, len(shape))
    moved = [axis for axis in perm if shape[axis] != 1]
    if moved == sorted(moved):
        return first
    inner = first.producer()
    if inner is None or inner.op_type != "Transpose" or inner.domain not in ONNX_DOMAINS:
        return None
    before = _permutation(inner, len(shape))
    return inner.inputs[0] if [before[axis] for axis in perm] == list(range(len(shape))) else None


def _permutation(node: ir.Node, rank: int) -> list[int]:
    """All axes backwards by default (ONNX operator specification)."""
    stated = node.attributes.get("perm")
    return list(reversed(range(rank))) if stated is None else list(stated.as_ints())


def _not_neutral(node: ir.Node, shape: tuple[int, ...], known: dict[str, ir.Value]) -> ir.Value | None:
    """The input of an arithmetic node that it gives back, since the other is all ones or zeros."""
    first, second = node.inputs
    pairs = [(first, second), (second, first)] if node.op_type in _COMMUTES else [(first, second)]
    for kept, other in pairs:
        if kept is not None and other is not None and _kind(kept, known)[0] == shape:
            tensor = tensor_of(other)
            if tensor is not None and bool(np.all(tensor.numpy() == _NEUTRAL[node.op_type])):
                return kept
    return None


def _untouched(node: ir.Node, first: ir.Value, known: dict[str, ir.Value]) -> ir.Value | None:
    """The first input of a Pad of nothing, or of a Slice that steps forward and keeps the shape."""
    if node.op_type == "Pad" and len(node.inputs) > 1 and node.inputs[1] is not None:
        pads = tensor_of(node.inputs[1])
        return first if pads is not None and not np.any(pads.numpy()) else None
    if node.op_type == "Slice":
        steps = input_at(node, 4)
        tensor = tensor_of(steps)
        forward = steps is None or (tensor is not None and bool(np.all(tensor.numpy() > 0)))
        shape = _kind(first, known)[0]
        return first if forward and shape is not None and shape == _kind(node.outputs[0], known)[0] else None
    return None
