"""Two graphs in a row as one: what the first gives, the second takes."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir
from onnx_ir import convenience

SECOND = "behind"
"""Begins the new names of values and nodes of the second graph whose own the first has already."""


def joined(first: ir.Model, second: ir.Model, wires: Mapping[str, str]) -> tuple[ir.Model, dict[str, str]]:
    """`second` behind `first`; both stay as they are, and the weights are shared with them.

    Args:
        first: its inputs are all kept, and so are its outputs.
        second: those of its inputs that no wire leads to are inputs of the whole, its outputs outputs.
        wires: inputs of `second`, each to the output of `first` that it takes.

    Returns:
        The whole; and what the values of `second` are called in it, inputs that wires lead to left out.

    Raises:
        ValueError: the two state other opsets, or functions of one name; the message names them.
        KeyError: a wire leads to no input, or from no output.
    """
    if dict(first.opset_imports) != dict(second.opset_imports):
        raise ValueError(f"the opsets {_opsets(first)} and {_opsets(second)}")
    if shared := [str(key) for key in first.functions.keys() & second.functions.keys()]:
        raise ValueError(f"two functions called {shared[0]}")
    first, second = first.clone(), second.clone()
    front, back = first.graph, second.graph
    given = {str(value.name): value for value in front.outputs}
    taken = {str(value.name): value for value in back.inputs}
    names = _renamed(front, back)
    for name, source in wires.items():
        taken[name].replace_all_uses_with(given[source], replace_graph_outputs=True)
    weights = [back.initializers.pop(name) for name in list(back.initializers)]
    nodes, inputs, outputs = list(back), list(back.inputs), list(back.outputs)
    back.outputs.clear()
    back.inputs.clear()
    back.remove(nodes)
    front.extend(nodes)
    front.inputs.extend(value for name, value in zip(taken, inputs, strict=True) if name not in wires)
    front.outputs.extend(outputs)
    for weight in weights:
        front.register_initializer(weight)
    functions = (*first.functions.values(), *second.functions.values())
    whole = ir.Model(front, ir_version=max(first.ir_version, second.ir_version), functions=functions)
    return whole, {name: new for name, new in names.items() if name not in wires}


def _renamed(front: ir.Graph, back: ir.Graph) -> dict[str, str]:
    """Gives values and nodes of `back` new names where `front` has theirs; what the values are called then."""
    used = set(convenience.create_value_mapping(front))
    own = convenience.create_value_mapping(back)
    names = {}
    for name, value in own.items():
        new = name
        while new in used or (new != name and new in own):
            new = f"{SECOND}/{new}"
        _rename(value, new)
        used.add(new)
        names[name] = new
    used_nodes = {node.name for node in front.all_nodes()}
    own_nodes = {node.name for node in back.all_nodes()}
    for node in back.all_nodes():
        if node.name and node.name in used_nodes:
            new = node.name
            while new in used_nodes or new in own_nodes:
                new = f"{SECOND}{new}"
            node.name = new
            used_nodes.add(new)
    return names


def _rename(value: ir.Value, new: str) -> None:
    graph = value.graph if value.is_initializer() else None
    if graph is None:
        value.name = new
        return
    del graph.initializers[str(value.name)]
    value.name = new
    graph.register_initializer(value)


def _opsets(model: ir.Model) -> str:
    return ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items())
