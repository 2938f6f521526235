"""Write sequences of tensors, whose members are known, without them.

Before: SplitToSequence(x) -> s, SequenceAt(s, 1) -> y, as torch exports chunk, split, unbind. After: Split(x) -> _, y.
A sequence here is the list of its members: SequenceConstruct, SequenceEmpty, SequenceInsert and SequenceErase make one,
SplitToSequence makes one by a Split (and a Squeeze of each where keepdims is 0), SequenceAt takes a member,
SequenceLength is a constant, ConcatFromSequence is a Concat (of an Unsqueeze of each where new_axis is 1). The toolkit
breaks on SplitToSequence, SequenceConstruct and SequenceAt (gates/operators.py); the others come with them. What is
constant now, the shape of a member for one, is folded.

Left alone, so that the gate names it: a position or a split that depends on the data, an axis of unknown size, a split
together with keepdims 0 (ignored, says ONNX; onnxruntime squeezes), a sequence that a graph takes in or puts out, and
opsets before 13.

Exact: the same pieces of the same tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.fold_constants import folded
from surgery.matching import Matched, is_one_of, opset_of
from surgery.node_types import Types, output_types, stated_type
from surgery.scopes import Names, drop_unused, fresh_node_name, fresh_value_name, names_of, replace_value
from surgery.sequence_members import Members, draft, members_of, position, whole

AXES_ARE_INPUTS = 13
"""Opset since which Split, Squeeze and Unsqueeze take sizes and axes as inputs."""

DECLARATION = Declaration(
    name="decompose_sequences",
    summary="write sequences of tensors as Split, Concat and the tensors themselves",
    exactness=Exact("the same pieces of the same tensors (ONNX operator specification)"),
    after=frozenset({"fold_constants", "normalise_opset"}),
    matches=(
        Matched("ConcatFromSequence", used=frozenset({"axis", "new_axis"})),
        Matched("SequenceAt"),
        Matched("SequenceConstruct"),
        Matched("SequenceEmpty", irrelevant={"dtype": "an empty sequence has no member of that type"}),
        Matched("SequenceErase"),
        Matched("SequenceInsert"),
        Matched("SequenceLength"),
        Matched("SplitToSequence", used=frozenset({"axis", "keepdims"})),
    ),
)


def decompose_sequences() -> Pass:
    """The pass; its hits are the operators that are gone."""

    def rewrite(model: ir.Model) -> Rewritten:
        opset = opset_of(model)
        if opset < AXES_ARE_INPUTS or not any(is_one_of(node, DECLARATION.matches) for node in model.graph):
            return Rewritten(model, 0)
        rewritten = model.clone()
        hits = _decompose(rewritten.graph, opset)
        return Rewritten(folded(rewritten), hits) if hits else Rewritten(model, 0)

    return Pass(DECLARATION, rewrite)


def _decompose(graph: ir.Graph, opset: int) -> int:
    """Decompose in place: how many operators on sequences went."""
    types: Types = {value: known for value in graph.inputs if (known := stated_type(value)) is not None}
    names, members = names_of(graph), Members()
    before = sum(is_one_of(node, DECLARATION.matches) for node in graph)
    for node in graph:
        if not is_one_of(node, DECLARATION.matches):
            types |= output_types(node, types, opset)
            continue
        drafted: list[ir.Node] = []
        made = members_of(node, types, members, drafted)
        if made is not None:
            members[node.outputs[0]] = made
        else:
            _take(node, members, drafted, names)
        _insert(graph, node, drafted, names)
    drop_unused(graph)
    return before - sum(is_one_of(node, DECLARATION.matches) for node in graph)


def _take(node: ir.Node, members: Members, drafted: list[ir.Node], names: Names) -> None:
    """Let what reads a member, the length or the whole of a sequence read it without the sequence."""
    inputs = [value for value in node.inputs if value is not None]
    sequence = members.get(inputs[0])
    if sequence is None:
        return
    new: ir.Value | None = None
    if node.op_type == "SequenceLength":
        new = draft(drafted, "Identity", whole(np.array(len(sequence))))[0]
    elif node.op_type == "SequenceAt":
        place = position(inputs[1], len(sequence), highest=len(sequence) - 1)
        new = None if place is None else sequence[place]
    elif node.op_type == "ConcatFromSequence" and sequence:
        axis = node.attributes.get_int("axis", 0)
        if node.attributes.get_int("new_axis", 0):
            sequence = [draft(drafted, "Unsqueeze", piece, [axis])[0] for piece in sequence]
        new = draft(drafted, "Concat", *sequence, axis=axis)[0]
    if new is not None:
        identity = replace_value(node.outputs[0], new, names, DECLARATION.name)
        drafted.extend([identity] if identity is not None else [])


def _insert(graph: ir.Graph, node: ir.Node, drafted: Sequence[ir.Node], names: Names) -> None:
    """Name what is drafted after `node` and this pass, and put it behind the node."""
    stem = f"{node.outputs[0].name}/{DECLARATION.name}"
    for made in drafted:
        made.name = made.name or fresh_node_name(f"{node.name or stem}.{made.op_type}", names)
        for output in made.outputs:
            output.name = output.name or fresh_value_name(stem, names)
        for value in made.inputs:
            if value is not None and value.name is None:
                value.name = fresh_value_name(f"{stem}.{made.op_type}", names)
                graph.register_initializer(value)
    graph.insert_after(node, drafted)
