"""Finds the chains that shift the rows of relative attention: Pad, Reshape, Slice, in whatever spelling.

A chain only moves numbers and adds zeros, so it is followed by running it on the numbers of its own elements: what
comes out says for each element which one it was, and the chain is a shift where that is the shift's formula, whatever
its operators are. With N positions and the 2N - 1 distances between them, of which N - 1 is the distance 0:

    to positions    y[i, j] = x[i, N - 1 + j - i]              x [.., N, 2N - 1], y [.., N, N]
    to distances    y[i, m] = x[i, m - (N - 1) + i], or 0      x [.., N, N],      y [.., N, 2N - 1]

(VITS, `attentions.py`: `_relative_position_to_absolute_position` and `_absolute_position_to_relative_position`.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of, opset_of
from surgery.weights import weight_of

_FOLLOWED = "followed by running the chain on the numbers of its elements"

MOVING = (
    Matched("Identity"),
    Matched("Reshape", irrelevant={"allowzero": _FOLLOWED}),
    Matched("Unsqueeze", irrelevant={"axes": _FOLLOWED}),
    Matched("Squeeze", irrelevant={"axes": _FOLLOWED}),
    Matched("Pad", irrelevant={"mode": _FOLLOWED}),
    Matched("Concat", irrelevant={"axis": _FOLLOWED}),
    Matched("Slice"),
)
"""Operators that move numbers, or add zeros to them."""

Numbers = NDArray[np.int64]


class Kind(str, Enum):
    """Which of the two shifts; of one position both are none."""

    TO_POSITIONS = "to positions"
    TO_DISTANCES = "to distances"
    NONE = "none"


@dataclass(frozen=True)
class Shift:
    """A chain that is a shift.

    Attributes:
        kind: which.
        source: what is shifted.
        last: the node that ends the chain.
        positions: N.
        given, made: the shapes of what goes in and what comes out.
    """

    kind: Kind
    source: ir.Value
    last: ir.Node
    positions: int
    given: tuple[int, ...]
    made: tuple[int, ...]


def find_shift(last: ir.Node) -> Shift | None:
    """The shift that ends with `last`, a Slice; None where it ends none."""
    source, nodes = _chain(last)
    kinds = {node.op_type for node in nodes}
    given = static_shape(source)
    if given is None or not ({"Pad", "Concat"} & kinds and "Reshape" in kinds):
        return None
    numbers = _followed(nodes, source, given)
    if numbers is None or numbers.ndim < 2:
        return None
    kind = _kind(numbers, given)
    if kind is None:
        return None
    return Shift(kind, source, last, numbers.shape[-2], given, numbers.shape)


def _chain(last: ir.Node) -> tuple[ir.Value, list[ir.Node]]:
    """The nodes that move what `last` gives, in order, and what they move."""
    nodes: list[ir.Node] = []
    node: ir.Node | None = last
    value = last.outputs[0]
    while node is not None and (moved := _moved(node)) is not None:
        nodes.insert(0, node)
        value, node = moved, moved.producer()
    return value, nodes


def _moved(node: ir.Node) -> ir.Value | None:
    """What `node` moves, where all else that it reads is constant; None where it does more."""
    if not is_one_of(node, MOVING) or len(node.outputs) != 1 or not node.inputs:
        return None
    if node.op_type == "Concat":
        varying = [value for value in node.inputs if weight_of(value) is None]
        constants = [array for value in node.inputs if (array := weight_of(value)) is not None]
        return varying[0] if len(varying) == 1 and not any(array.any() for array in constants) else None
    if any(value is not None and weight_of(value) is None for value in node.inputs[1:]):
        return None
    if node.op_type == "Pad" and len(node.inputs) > 2:
        added = weight_of(node.inputs[2])
        if added is not None and added.any():
            return None
    return node.inputs[0]


def _followed(nodes: Sequence[ir.Node], source: ir.Value, given: Sequence[int]) -> Numbers | None:
    """Which element of `source` stands at each place behind `nodes`, counted from 1; 0 for an added zero."""
    constants: dict[str, onnx.TensorProto] = {}
    protos = [ir.to_proto(node) for node in nodes]
    for node, proto in zip(nodes, protos, strict=True):
        proto.domain = ""
        for value in node.inputs:
            array = weight_of(value)
            if value is not None and array is not None and value.name is not None:
                constants[value.name] = numpy_helper.from_array(array.astype(np.int64), value.name)
    graph = helper.make_graph(
        protos,
        "chain",
        [helper.make_value_info(str(source.name), onnx.TypeProto())],
        [helper.make_value_info(str(nodes[-1].outputs[0].name), onnx.TypeProto())],
        list(constants.values()),
    )
    numbers = np.arange(1, math.prod(given) + 1).reshape(given)
    try:
        evaluator = ReferenceEvaluator(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset_of(nodes[-1]))])
        )
        (made,) = evaluator.run(None, {str(source.name): numbers})
    except Exception:  # noqa: BLE001 - whatever a graph makes the evaluator raise: the chain stays, and the gate tells
        return None
    return np.asarray(made)


def _kind(numbers: Numbers, given: Sequence[int]) -> Kind | None:
    """Which shift gives these numbers; None where none does."""
    rows, columns = numbers.shape[-2:]
    groups = math.prod(numbers.shape[:-2])
    if len(given) < 2 or given[-2] != rows or math.prod(given[:-2]) != groups:
        return None
    wide = 2 * rows - 1
    i = np.arange(rows)[:, None]
    if (given[-1], columns) == (wide, rows):
        kind, read = Kind.TO_POSITIONS, rows - 1 + np.arange(rows)[None] - i
    elif (given[-1], columns) == (rows, wide):
        kind, read = Kind.TO_DISTANCES, np.arange(wide)[None] - (rows - 1) + i
    else:
        return None
    group = np.arange(groups)[:, None, None] * (rows * given[-1])
    wanted = np.where((read >= 0) & (read < given[-1]), group + i * given[-1] + read + 1, 0)
    if not np.array_equal(wanted, numbers.reshape(groups, rows, columns)):
        return None
    return Kind.NONE if rows == 1 else kind
