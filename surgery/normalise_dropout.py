"""Take out the Dropouts that the toolkit breaks on, which do nothing in inference.

Before: y, mask = Dropout(x, ratio, training_mode) whose training_mode is true and its ratio 0, or whose mask is read.
After: x is read instead of y, and a constant of true instead of the mask; what is made of it alone is folded. Any other
Dropout in inference is left to the toolkit, which drops it (opsets 11 to 17, its ratio and training_mode given or not;
measured, rknn-toolkit2 2.3.2). A mask that is read ends in "KeyError", training in a crash of the compiler.

Preconditions: inference, or a ratio of 0: in training it draws noise. A mask that is read has known sizes.

Exact: outside training, Dropout gives its input and a mask of true (ONNX operator specification).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.fold_constants import folded
from surgery.graph import input_at
from surgery.inferred import inferred, static_shape
from surgery.interface import fresh_name, is_reasonable
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.weights import tensor_of

INFERENCE = "Dropout outside training"
KNOWN_MASK = "known sizes of a mask that is read"

_NO_DRAW = "nothing is drawn outside training, or at a ratio of 0"

DROPOUT = (Matched("Dropout", used=frozenset({"ratio"}), irrelevant={"seed": _NO_DRAW}),)

DECLARATION = Declaration(
    name="normalise_dropout",
    summary="take out a Dropout whose mask is read, or that trains at a ratio of 0",
    exactness=Exact("outside training it gives its input and a mask of true (ONNX operator specification)"),
    after=frozenset({"fold_constants"}),
    matches=DROPOUT,
    preconditions=(INFERENCE, KNOWN_MASK),
)


@dataclass(frozen=True)
class _Place:
    """A Dropout that goes, by its place among the nodes, and the sizes of its mask where that is read."""

    index: int
    mask: tuple[int, ...] | None


def normalise_dropout() -> Pass:
    """The pass; its hits are the nodes that are gone."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    dropouts = [(index, node) for index, node in enumerate(model.graph) if is_one_of(node, DROPOUT)]
    known = inferred(model) if any(_mask(node) is not None for _, node in dropouts) else {}
    plans = [_plan(index, node, known) for index, node in dropouts]
    refused = tuple(plan for plan in plans if isinstance(plan, Refused))
    places = [plan for plan in plans if isinstance(plan, _Place)]
    if refused or not places:
        return Rewritten(model, 0, refused)
    model = model.clone()
    nodes = list(model.graph)
    for place in places:
        _take_out(model.graph, nodes[place.index], place.mask)
    return Rewritten(folded(model), hits=len(places))


def _plan(index: int, node: ir.Node, known: dict[str, ir.Value]) -> _Place | Refused | None:
    """None where the toolkit takes the node as it is."""
    training = input_at(node, 2)
    trains = training is not None
    if training is not None:
        mode = tensor_of(training)
        if mode is None:
            got = f"its training_mode '{training.name}' is no constant"
            return Refused(node_label(node), INFERENCE, "training_mode false", got)
        trains = bool(np.any(mode.numpy()))
        if trains and _ratio(node) != 0:
            got = f"its training_mode '{training.name}' is true: export the model in inference mode"
            return Refused(node_label(node), INFERENCE, "training_mode false", got)
    mask = _mask(node)
    if mask is None:
        return _Place(index, None) if trains else None
    data = node.inputs[0]
    shape = None if data is None else static_shape(known.get(str(data.name), data))
    if shape is None or not is_reasonable(shape):
        return Refused(node_label(node), KNOWN_MASK, "whole numbers", f"its mask '{mask.name}' has none")
    return _Place(index, shape)


def _mask(node: ir.Node) -> ir.Value | None:
    """The mask that `node` makes; None where nobody reads it."""
    mask = node.outputs[1] if len(node.outputs) > 1 else None
    return mask if mask is not None and (mask.uses() or mask.is_graph_output()) else None


def _ratio(node: ir.Node) -> float | None:
    """0.5 by default (ONNX operator specification); None where it is computed."""
    ratio = input_at(node, 1)
    if ratio is None:
        stated = node.attributes.get("ratio")  # up to opset 11
        return 0.5 if stated is None else stated.as_float()
    tensor = tensor_of(ratio)
    return None if tensor is None else float(tensor.numpy().reshape(-1)[0])


def _take_out(graph: ir.Graph, node: ir.Node, mask: tuple[int, ...] | None) -> None:
    data, made = node.inputs[0], node.outputs[0]
    assert data is not None
    if mask is not None:
        tensor = ir.tensor(np.ones(mask, np.bool_))
        kind, shape = ir.TensorType(tensor.dtype), ir.Shape(mask)
        ones = ir.Value(name=node.outputs[1].name, type=kind, shape=shape, const_value=tensor)
        ir.convenience.replace_all_uses_with(node.outputs[1], ones, replace_graph_outputs=True)
        graph.register_initializer(ones)
    if made.is_graph_output():
        copy = ir.node("Identity", [data], name=fresh_name(graph, f"{made.name}_{DECLARATION.name}"))
        ir.convenience.replace_nodes_and_values(graph, node, [node], [copy], [made], copy.outputs)
    else:
        made.replace_all_uses_with(data)
        graph.remove(node, safe=True)
