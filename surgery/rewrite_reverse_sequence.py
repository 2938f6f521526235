"""Reverse the front of one sequence by Gather.

Before:  ReverseSequence(x [t, 1, ..], lengths [n]), time_axis 0      After:  Gather(x, [n - 1, .., 0, n, .., t - 1])

The toolkit reverses such a sequence to its end, whatever its length (-3 dB in the simulator; Gather 74 dB). It is right
on a batch of more than one, on time_axis 1, and on the whole length (measured, rknn-toolkit2 2.3.2, rk3588).

Precondition: a constant length.

Exact: the same elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.splice import Draft, splice, whole_numbers
from surgery.weights import weight_of

CONSTANT_LENGTH = "a constant length where one sequence is reversed"

DECLARATION = Declaration(
    name="rewrite_reverse_sequence",
    summary="a ReverseSequence that turns the front of one sequence, as a Gather",
    exactness=Exact("the same elements in the same order"),
    after=frozenset({"fold_constants"}),
    matches=(Matched("ReverseSequence", used=frozenset({"batch_axis", "time_axis"})),),
    preconditions=(CONSTANT_LENGTH,),
)


@dataclass(frozen=True)
class _Reversal:
    """The first `length` of `steps` are to be reversed."""

    node: ir.Node
    length: int
    steps: int


def rewrite_reverse_sequence() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _write)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _write(found: _Reversal) -> None:
    order = [*reversed(range(found.length)), *range(found.length, found.steps)]
    draft = Draft()
    made = draft.add("Gather", found.node.inputs[0], whole_numbers(order), axis=0)
    splice(found.node, draft.nodes, [made], DECLARATION.name)


def _look(node: ir.Node) -> _Reversal | Refused | None:
    """The plan for one node; None where the toolkit is right on it."""
    if len(node.inputs) < 2 or node.inputs[0] is None:
        return None
    shape = static_shape(node.inputs[0])
    axes = [node.attributes[name].as_int() if name in node.attributes else absent for name, absent in _AXES]
    if axes != [1, 0] or shape is None or len(shape) < 2 or shape[1] != 1:
        return None
    lengths = weight_of(node.inputs[1])
    if lengths is None:
        got = "none" if node.inputs[1] is None else f"'{node.inputs[1].name}' is computed"
        return Refused(node_label(node), CONSTANT_LENGTH, "a weight", got)
    if lengths.size != 1 or not 1 <= lengths.item() < shape[0]:
        return None
    return _Reversal(node, lengths.item(), shape[0])


_AXES = (("batch_axis", 1), ("time_axis", 0))
"""The attributes, and ONNX's defaults."""
