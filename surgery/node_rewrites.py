"""Look at every node first; then rewrite all that are to be rewritten, or refuse and touch nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import onnx_ir as ir

from surgery.declaration import Refused, Rewritten
from surgery.graph import graph_of
from surgery.inferred import infer_types, state_again, stated_types
from surgery.scopes import drop_unused_weights

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
    stated = stated_types(changed)
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
    state_again(stated)
    return Rewritten(changed, hits=len(plans))


def rewrite_in_turn(
    model: ir.Model,
    is_wanted: Callable[[ir.Node], bool],
    plan: Callable[[ir.Node], Plan | None],
    write: Callable[[Plan], None],
) -> Rewritten:
    """As `rewrite_nodes`, for plans that depend on one another: each is written before the next node is looked at.

    Goes over the nodes again until there is none to rewrite. A plan takes its node out of the graph; it adds none, and
    changes no shape.
    """
    if not any(is_wanted(node) for node in model.graph):
        return Rewritten(model, 0)
    changed = model.clone()
    stated = stated_types(changed)
    infer_types(changed)
    hits, before = 0, -1
    while hits > before:
        before = hits
        for node in changed.graph:  # onnx-ir's list of nodes stands it when one goes during the walk
            found = plan(node) if is_wanted(node) else None
            if found is not None:
                write(found)
                hits += 1
    if not hits:
        return Rewritten(model, 0)
    state_again(stated)
    for was, value in zip(model.graph.outputs, changed.graph.outputs, strict=True):
        value.shape, value.type = was.shape, was.type  # of another value now, which stated nothing maybe
    return Rewritten(changed, hits)


def let_stand(value: ir.Value, node: ir.Node) -> None:
    """Let `value`, which an earlier node makes, stand for the one output of `node`, which goes.

    Where that is an output of the graph, `value` is none, and takes its name.
    """
    output, graph = node.outputs[0], graph_of(node)
    name, read = output.name, [given for given in node.inputs if given is not None and given.is_initializer()]
    is_output = output.is_graph_output()
    output.replace_all_uses_with(value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    if is_output:
        value.name = name
    drop_unused_weights(graph, list(dict.fromkeys(read)))
