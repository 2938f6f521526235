"""Look at every node first; then rewrite all that are to be rewritten, or refuse and touch nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import onnx_ir as ir

from surgery.declaration import Refused, Rewritten
from surgery.inferred import infer_types

Plan = TypeVar("Plan")


def rewrite_nodes(
    model: ir.Model,
    is_wanted: Callable[[ir.Node], bool],
    plan: Callable[[ir.Node], Plan | Refused | None],
    write: Callable[[Plan], None],
) -> Rewritten:
    """Rewrite the nodes of the main graph of a copy of `model`; hits are the plans.

    Args:
        model: is left as it is.
        is_wanted: whether to look at a node at all; asked before anything is inferred, which takes its time.
        plan: what to do with a wanted node, whose values have their types and shapes by then; a refusal, upon which
            nothing is written anywhere; or None where the node stays as it is.
        write: does it, in the node's graph.
    """
    if not any(is_wanted(node) for node in model.graph):
        return Rewritten(model, 0)
    changed = model.clone()
    stated = _stated(changed)
    infer_types(changed)
    refused: list[Refused] = []
    plans: list[Plan] = []
    for node in changed.graph:
        found = plan(node) if is_wanted(node) else None
        if isinstance(found, Refused):
            refused.append(found)
        elif found is not None:
            plans.append(found)
    if refused or not plans:
        return Rewritten(model, 0, tuple(refused))
    for one in plans:
        write(one)
    for value, (shape, kind) in stated.items():
        value.shape, value.type = shape, kind
    return Rewritten(changed, hits=len(plans))


def _stated(model: ir.Model) -> dict[ir.Value, tuple[ir.Shape | None, ir.TypeProtocol | None]]:
    """The shape and type of each value as the graph has them, to be given back.

    Inference contradicts onnxruntime on some nodes (a ConvTranspose of auto_pad SAME), and who reads the graph next
    would believe it.
    """
    nodes = model.graph.all_nodes()
    values = [
        *model.graph.inputs,
        *model.graph.initializers.values(),
        *(made for node in nodes for made in node.outputs),
    ]
    return {value: (value.shape, value.type) for value in values}
