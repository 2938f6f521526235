"""Look at every node first; then rewrite all that are to be rewritten, or refuse and touch nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import onnx_ir as ir

from surgery.declaration import Refused, Rewritten
from surgery.inferred import infer_types, state_again, stated_types

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
