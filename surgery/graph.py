"""Walks over a graph, and the cut of a part out of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx_ir as ir
from onnx_ir import convenience


def value_named(graph: ir.Graph, name: str) -> ir.Value:
    """The value called `name` in the main graph.

    Raises:
        KeyError: there is none.
    """
    return convenience.create_value_mapping(graph, include_subgraphs=False)[name]


def ancestors(values: Iterable[ir.Value]) -> set[ir.Node]:
    """Every node that `values` depend on, captures of nested graphs included."""
    found: set[ir.Node] = set()
    todo = list(values)
    while todo:
        node = todo.pop().producer()
        if node is not None and node not in found:
            found.add(node)
            todo.extend(node_dependencies(node))
    return found


def descendants(values: Iterable[ir.Value]) -> set[ir.Node]:
    """Every node that depends on `values`."""
    found: set[ir.Node] = set()
    todo = list(values)
    while todo:
        for node in todo.pop().consumers():
            owner = _node_in_main_graph(node)
            if owner not in found:
                found.add(owner)
                todo.extend(owner.outputs)
    return found


def node_dependencies(node: ir.Node) -> list[ir.Value]:
    """The values `node` reads: its inputs, and what its nested graphs capture from outside."""
    read = [value for value in node.inputs if value is not None]
    for attribute in node.attributes.values():
        for graph in _graphs_of(attribute):
            inner = {value for nested in graph.all_nodes() for value in nested.outputs}
            inner.update(graph.inputs, graph.initializers.values())
            used = [value for nested in graph.all_nodes() for value in nested.inputs if value is not None]
            read.extend(value for value in [*used, *graph.outputs] if value not in inner)
    return read


def varying_values(graph: ir.Graph) -> set[ir.Value]:
    """The values of the main graph that depend on an input or on a random operator; the others are constants."""
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    drawn = [value for node in graph if node.op_type.startswith("Random") for value in node.outputs]
    return {*inputs, *drawn} | {value for node in descendants([*inputs, *drawn]) for value in node.outputs}


def extract(
    model: ir.Model,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
) -> ir.Model:
    """Cut the part between `inputs` and `outputs` out of `model`; both map a value's name to its new name.

    The weights are shared with `model`, the nodes are copies.

    Raises:
        ValueError: an output depends on a graph input that is not among `inputs`, or a name is unknown.
    """
    graph = convenience.extract(model.graph, list(inputs), list(outputs))
    taken = {value.name for value in graph.inputs} | {value.name for value in graph.outputs}
    _move_aside(graph, (set(inputs.values()) | set(outputs.values())) - taken)
    for value, name in zip([*graph.inputs, *graph.outputs], [*inputs.values(), *outputs.values()], strict=True):
        value.name = name
    return with_graph(model, graph)


def with_graph(model: ir.Model, graph: ir.Graph) -> ir.Model:
    """A model like `model` (IR version, functions) around another graph."""
    return ir.Model(graph, ir_version=model.ir_version, functions=tuple(model.functions.values()))


def level_of_ratio(nodes: Sequence[ir.Node], start: Collection[ir.Value]) -> dict[ir.Value, int]:
    """How many steps of the time axis each value has for one step of `start` (1), along ConvTranspose strides.

    Args:
        nodes: in topological order.
        start: values at the base rate.

    Returns:
        The ratio of every value that depends on `start`, keyed by value.

    Raises:
        ValueError: two inputs of a node have different ratios; the message names the node.
    """
    ratio = dict.fromkeys(start, 1)
    for node in nodes:
        rates = {ratio[value] for value in node.inputs if value in ratio}
        if not rates:
            continue
        if len(rates) > 1:
            raise ValueError(f"the node {node.name} ({node.op_type}) joins the rates {sorted(rates)}")
        rate = rates.pop() * (time_stride(node) if node.op_type == "ConvTranspose" else 1)
        ratio.update(dict.fromkeys(node.outputs, rate))
    return ratio


def time_stride(node: ir.Node) -> int:
    """The stride along the last axis of a Conv or ConvTranspose (default 1, ONNX operator specification)."""
    attribute = node.attributes.get("strides")
    return int(attribute.as_ints()[-1]) if attribute is not None else 1


def _graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    if attribute.type == ir.AttributeType.GRAPHS:
        return list(attribute.as_graphs())
    return []


def _node_in_main_graph(node: ir.Node) -> ir.Node:
    """The node of the main graph that holds `node` in its nested graphs, or `node` itself."""
    graph = node.graph
    while isinstance(graph, ir.Graph) and (parent := getattr(graph, "parent_node", None)) is not None:
        node, graph = parent, parent.graph
    return node


def _move_aside(graph: ir.Graph, names: Collection[str]) -> None:
    """Rename values that stand in the way of `names` (a voice may call an initializer `z`)."""
    mapping = convenience.create_value_mapping(graph, include_subgraphs=False)
    for name in names:
        if name in mapping:
            value, fresh = mapping[name], f"{name}__original"
            if value.is_initializer():
                del graph.initializers[name]
                value.name = fresh
                graph.initializers[fresh] = value
            else:
                value.name = fresh
