"""The members of a sequence of tensors, for the pass that writes graphs without sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.node_types import Types, is_constant, static_sizes, type_of

Members = dict[ir.Value, list[ir.Value]]
"""The members of each sequence."""

MOST_MEMBERS = 4096
"""Most members of a sequence that are written out; a sequence of a longer one is no graph for an engine."""


def members_of(node: ir.Node, types: Types, members: Members, drafted: list[ir.Node]) -> list[ir.Value] | None:
    """The members of the sequence that `node` makes; None where it makes none, or they are not known."""
    given = [value for value in node.inputs if value is not None]
    if node.op_type == "SequenceEmpty":
        return []
    if node.op_type == "SequenceConstruct":
        return given
    if node.op_type == "SplitToSequence":
        return _split(node, types, drafted)
    if node.op_type not in ("SequenceInsert", "SequenceErase") or given[0] not in members:
        return None
    made, inserts = list(members[given[0]]), node.op_type == "SequenceInsert"
    places = given[2:] if inserts else given[1:]
    place = position(places[0], len(made), highest=len(made) - (not inserts)) if places else len(made) - (not inserts)
    if place is None or place < 0:
        return None
    made[place : place + (not inserts)] = [given[1]] if inserts else []
    return made if len(made) <= MOST_MEMBERS else None


def _split(node: ir.Node, types: Types, drafted: list[ir.Node]) -> list[ir.Value] | None:
    """The pieces of a tensor, by a Split that is drafted."""
    source, split = (*node.inputs, None)[:2]
    squeezed = node.attributes.get_int("keepdims", 1) == 0
    if source is None or (squeezed and split is not None):
        return None
    sizes, axis = static_sizes(type_of(source, types)), node.attributes.get_int("axis", 0)
    if sizes is None or not -len(sizes) <= axis < len(sizes):
        return None
    lengths = _lengths(split, sizes[axis])
    if lengths is None:
        return None
    (*pieces,) = (
        [source] if len(lengths) == 1 else draft(drafted, "Split", source, lengths, outputs=len(lengths), axis=axis)
    )
    if squeezed:
        pieces = [draft(drafted, "Squeeze", piece, [axis])[0] for piece in pieces]
    return pieces


def _lengths(split: ir.Value | None, length: int) -> list[int] | None:
    """The lengths of the pieces of an axis of `length`."""
    if split is None:
        lengths = [1] * min(length, MOST_MEMBERS + 1)
    elif not is_constant(split) or split.const_value is None or split.const_value.size > MOST_MEMBERS:
        return None
    elif len(split.const_value.shape):
        lengths = [int(size) for size in split.const_value.numpy()]
    else:
        size = int(split.const_value.numpy())
        if size < 1 or length > size * MOST_MEMBERS:
            return None
        lengths = [min(size, length - start) for start in range(0, length, size)]
    return lengths if 0 < len(lengths) <= MOST_MEMBERS and sum(lengths) == length and min(lengths) > 0 else None


def position(value: ir.Value, length: int, highest: int) -> int | None:
    """A constant position in a sequence of `length`, counted from its start; None past `highest`."""
    if not is_constant(value) or value.const_value is None or value.const_value.size != 1:
        return None
    found = int(value.const_value.numpy().reshape(-1)[0])
    found += length if found < 0 else 0
    return found if 0 <= found <= highest else None


def draft(
    drafted: list[ir.Node], op: str, *inputs: ir.Value | list[int], outputs: int = 1, **attributes: int
) -> Sequence[ir.Value]:
    """The outputs of a new node; a list of numbers becomes a weight."""
    values = [value if isinstance(value, ir.Value) else whole(np.array(value)) for value in inputs]
    drafted.append(ir.node(op, values, attributes=attributes, num_outputs=outputs))
    return drafted[-1].outputs


def whole(array: NDArray[np.int64]) -> ir.Value:
    """A weight of whole numbers, in no graph and without a name."""
    return ir.Value(type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(array.shape), const_value=ir.tensor(array))
