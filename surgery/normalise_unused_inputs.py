"""Drop the inputs that no output depends on, and the nodes that only they feed.

Before: inputs x and u, y = f(x), and nothing that leads from u to y. After: the input x, y = f(x). The toolkit drops
such an input from the engine without a word, and whoever feeds it then is refused (measured, rknn-toolkit2 2.3.2).

Exact: no output reads what is dropped.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Interface, Pass, Rewritten
from surgery.graph import ancestors, node_dependencies

DECLARATION = Declaration(
    name="normalise_unused_inputs",
    summary="drop inputs that no output depends on",
    exactness=Exact("no output reads what is dropped"),
    after=frozenset(
        {
            "decompose_missing_kernels",
            "decompose_sequences",
            "fold_constants",
            "fold_empty_parts",
            "normalise_dropout",
            "normalise_initializers",
            "rewrite_noise_as_inputs",
        }
    ),
)


def normalise_unused_inputs() -> Pass:
    """The pass; its hits are the inputs that are gone."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not unused_inputs(model.graph):
        return Rewritten(model, 0)
    model = model.clone()
    graph = model.graph
    dropped = unused_inputs(graph)
    needed = ancestors(graph.outputs)
    graph.remove([node for node in graph if node not in needed], safe=True)
    kept = [value for value in graph.inputs if value not in dropped]
    graph.inputs.clear()
    graph.inputs.extend(kept)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]
    removed = tuple(str(value.name) for value in dropped if not value.is_initializer())
    return Rewritten(model, hits=len(dropped), interface=Interface(removed=removed))


def unused_inputs(graph: ir.Graph) -> list[ir.Value]:
    """The inputs of `graph` that no output depends on."""
    read = {value for node in ancestors(graph.outputs) for value in node_dependencies(node)}
    return [value for value in graph.inputs if value not in read and not value.is_graph_output()]
