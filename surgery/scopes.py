"""Names across the graphs nested in one another, and what is left behind when a part of them goes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator

import onnx_ir as ir

Names = Counter[str]
"""How often each name stands for a value in a graph and in those nested in it; nodes under `node_key`."""


def names_of(graph: ir.Graph) -> Names:
    """The names of the values and nodes of `graph`, nested graphs included."""
    found: Names = Counter()
    for inner in (graph, *nested_graphs(graph)):
        found.update(value.name for value in (*inner.inputs, *inner.initializers.values()) if value.name)
        for node in inner:
            found.update(value.name for value in node.outputs if value.name)
            found.update([node_key(node.name)] if node.name else [])
    return found


def node_key(name: str) -> str:
    """A node and a value may have one name; this keeps them apart in one counter."""
    return f"node\0{name}"


def fresh_value_name(name: str, names: Names) -> str:
    """`name`, or one like it, that no value has; it is taken then."""
    fresh, count = name, 1
    while names[fresh] > 0:
        count += 1
        fresh = f"{name}_{count}"
    names[fresh] += 1
    return fresh


def fresh_node_name(name: str, names: Names) -> str:
    """`name`, or one like it, that no node has; it is taken then."""
    return fresh_value_name(node_key(name), names).removeprefix(node_key(""))


def name_nodes(graph: ir.Graph) -> None:
    """Name every node that has no name, nested ones included, after what it makes: sentences call it so."""
    names = names_of(graph)
    for node in graph.all_nodes():
        if not node.name:
            made = next((value.name for value in node.outputs if value.name), node.op_type)
            node.name = fresh_node_name(made, names)


def nested_graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The graphs nested in `graph`, at every depth."""
    for node in graph.all_nodes():
        yield from graphs_of(node)


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that are attributes of `node`."""
    for attribute in node.attributes.values():
        if attribute.is_ref():  # a parameter of the function around it
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def remove(node: ir.Node) -> None:
    """Take `node`, which nothing reads, out of its graph; its nested graphs read nothing from outside any more."""
    for graph in graphs_of(node):
        release(graph)
    if node.graph is not None:
        node.graph.remove(node, safe=True)


def release(graph: ir.Graph) -> None:
    """Let go of every value that `graph`, which goes away, reads from outside."""
    graph.outputs.clear()
    for inner in nested_graphs(graph):
        inner.outputs.clear()
    for node in graph.all_nodes():
        for position in range(len(node.inputs)):
            node.replace_input_with(position, None)


def drop_unused(graph: ir.Graph) -> int:
    """Remove the nodes and weights of the main graph `graph` that no output depends on; returns how many."""
    dead = 0
    for node in reversed(graph):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            remove(node)
            dead += 1
    return dead + drop_unused_weights(graph, list(graph.initializers.values()))


def drop_unused_weights(graph: ir.Graph, weights: list[ir.Value]) -> int:
    """Remove those of `weights` of `graph` that nothing uses; returns how many."""
    unused = [value for value in weights if not (value.uses() or value.is_graph_output() or value.is_graph_input())]
    for value in unused:
        assert value.name is not None
        del graph.initializers[value.name]
    return len(unused)


def named(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """`tensor` under `name`; another object where it has a name of its own, for models share their tensors."""
    if tensor.name == name:
        return tensor
    if isinstance(tensor, ir.ExternalTensor):
        other = copy.copy(tensor)
        other.name = name
        return other
    if tensor.dtype == ir.DataType.STRING:
        return ir.StringTensor(tensor.numpy(), shape=ir.Shape(tensor.shape.numpy()), name=name)
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=name)


def replace_value(old: ir.Value, new: ir.Value, names: Names, made_by: str) -> ir.Node | None:
    """Let everything that reads `old` read `new`.

    Where `old` is a graph output, which keeps its name, an Identity named after `made_by` makes it from `new`; it is
    returned, to be put into the graph.
    """
    if not old.is_graph_output():
        old.replace_all_uses_with(new)
        return None
    output = ir.Value(name=old.name, type=old.type or new.type, shape=new.shape if old.shape is None else old.shape)
    old.replace_all_uses_with(output, replace_graph_outputs=True)
    return ir.Node("", "Identity", [new], outputs=[output], name=fresh_node_name(f"{old.name}/{made_by}", names))
