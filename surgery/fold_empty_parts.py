"""Take what has no length out of a Split and out of a Concat.

Before: `Split` into parts of which some are empty, `Concat` with an empty operand (ONNX's own body of RotaryEmbedding
where all of a head turns, caches that hold nothing yet). After: the others, or nothing but a name where one is left; an
empty part that something else reads is an empty constant.

The toolkit takes all that a Split with an empty part makes for constant ("All outputs of model are constants, The model
is invalid!"). A Concat with an empty operand is right alone, and dies where the toolkit moves a Transpose over it
("Can't merge shape info", measured, rknn-toolkit2 2.3.2, rk3588).

Precondition: an empty part is no output of the graph.

Exact: a part of no length holds nothing.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.fold_constants import folded
from surgery.graph import input_at
from surgery.inferred import infer_types
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.splice import Draft, splice, whole_numbers
from surgery.weights import tensor_of

A_LENGTH = "an output that holds something"

SPLIT = Matched(
    "Split",
    used=frozenset({"axis", "split"}),
    irrelevant={"num_outputs": "says how many parts there are where no lengths are given; none is empty then"},
)

CONCAT = Matched("Concat", irrelevant={"axis": "an operand is empty along it, or the result is empty too"})

DECLARATION = Declaration(
    name="fold_empty_parts",
    summary="drop the empty parts of a Split and the empty operands of a Concat",
    exactness=Exact("a part of no length holds nothing"),
    after=frozenset({"fold_constants", "normalise_defaults", "normalise_opset"}),
    matches=(SPLIT, CONCAT),
    preconditions=(A_LENGTH,),
)


def fold_empty_parts() -> Pass:
    """The pass; its hits are nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not any(is_one_of(node, (SPLIT, CONCAT)) for node in model.graph):
            return Rewritten(model, 0)
        clone = model.clone()
        infer_types(clone)
        found = [node for node in clone.graph if _has_empty_part(node)]
        refused = [
            Refused(node_label(node), A_LENGTH, "at least one value", f"'{value.name}' is a part of length 0")
            for node in found
            for value, length in zip(node.outputs, _lengths(node), strict=True)
            if length == 0 and value.is_graph_output()
        ]
        if refused:
            return Rewritten(model, 0, tuple(refused))
        hits = sum(_join(node) for node in clone.graph if is_one_of(node, (CONCAT,)))
        hits += sum(_fold(node) for node in found)
        return Rewritten(folded(clone), hits) if hits else Rewritten(model, 0)

    return Pass(DECLARATION, rewrite)


def _lengths(node: ir.Node) -> list[int]:
    """The stated lengths of the parts; none where they are not stated or computed."""
    if "split" in node.attributes:
        return list(node.attributes["split"].as_ints())
    given = input_at(node, 1)
    tensor = tensor_of(given)
    return [] if tensor is None else [int(length) for length in tensor.numpy()]


def _has_empty_part(node: ir.Node) -> bool:
    lengths = _lengths(node) if is_one_of(node, (SPLIT,)) else []
    return len(lengths) == len(node.outputs) and 0 in lengths and any(lengths)


def _fold(node: ir.Node) -> bool:
    """Whether the empty parts could be taken out: what reads one needs to know its shape."""
    lengths, given, graph = _lengths(node), node.inputs[0], node.graph
    empty = [value for value, length in zip(node.outputs, lengths, strict=True) if length == 0]
    if graph is None or any(value.uses() and _empty_tensor(value) is None for value in empty):
        return False
    for value in empty:
        tensor = _empty_tensor(value)
        if value.uses() and tensor is not None:
            nothing = ir.Value(name=f"{value.name}.{DECLARATION.name}", type=value.type, shape=value.shape)
            nothing.const_value = tensor
            tensor.name = nothing.name
            graph.register_initializer(nothing)
            value.replace_all_uses_with(nothing)
        value.name = None
    kept = [length for length in lengths if length]
    draft = Draft()
    if len(kept) == 1:
        draft.add("Identity", given)
    elif "split" in node.attributes:
        draft.add("Split", given, outputs=len(kept), axis=node.attributes.get("axis"), split=kept)
    else:
        draft.add("Split", given, whole_numbers(kept), outputs=len(kept), axis=node.attributes.get("axis"))
    made = zip(
        [v for v, length in zip(node.outputs, lengths, strict=True) if length], draft.nodes[-1].outputs, strict=True
    )
    splice(node, draft.nodes, [new for old, new in made if old.name], DECLARATION.name)
    return True


def _join(node: ir.Node) -> bool:
    """Whether the Concat `node` had empty operands, and others, and is of the others now."""
    full = [value for value in node.inputs if value is None or not _is_empty(value)]
    if not full or len(full) == len(node.inputs):
        return False
    draft = Draft()
    if len(full) == 1:
        draft.add("Identity", *full)
    else:
        draft.add("Concat", *full, copied=node.attributes)
    splice(node, draft.nodes, draft.nodes[-1].outputs, DECLARATION.name)
    return True


def _is_empty(value: ir.Value) -> bool:
    return value.shape is not None and any(size == 0 for size in value.shape)


def _empty_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    if value.dtype is None or value.shape is None or not value.shape.is_static():
        return None
    return ir.tensor(np.zeros(value.shape.numpy(), value.dtype.numpy()), dtype=value.dtype)
