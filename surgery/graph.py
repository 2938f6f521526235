"""Walks over a graph, and the cut of a part out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import onnx_ir as ir
from onnx_ir import convenience

from surgery.matching import Matched, is_one_of

Part = TypeVar("Part", bound=Hashable)

_NOT_THE_RATE = "adds or takes a constant number of steps; what is behind each step stays the same"
_CHANNELS = "says which channels are summed; the time axis is not touched"
_PLACING = {
    **dict.fromkeys(("auto_pad", "dilations", "kernel_shape", "pads"), _NOT_THE_RATE),
    "group": _CHANNELS,
}

RATED = (
    Matched("Conv", used=frozenset({"strides"}), irrelevant=_PLACING),
    Matched(
        "ConvTranspose",
        used=frozenset({"strides"}),
        required={"output_shape": "absent"},
        irrelevant={**_PLACING, "output_padding": _NOT_THE_RATE},
    ),
)
"""What `level_of_ratio` makes of the operators that change the rate. Exact lengths: `surgery.convolution_length`."""


def value_named(graph: ir.Graph, name: str) -> ir.Value:
    """The value called `name` in the main graph.

    Raises:
        KeyError: there is none.
    """
    return convenience.create_value_mapping(graph, include_subgraphs=False)[name]


def graph_of(node: ir.Node) -> ir.Graph:
    """The graph that `node` stands in."""
    assert isinstance(node.graph, ir.Graph)
    return node.graph


def input_at(node: ir.Node, place: int) -> ir.Value | None:
    """Input `place` of `node`; None where it is left out."""
    return node.inputs[place] if place < len(node.inputs) else None


def input_of(node: ir.Node, place: int = 0) -> ir.Value:
    """Input `place` of `node`, which is not left out."""
    value = node.inputs[place]
    assert value is not None
    return value


def only_reader(value: ir.Value) -> ir.Node | None:
    """The one node, in the same graph, that reads `value`; None where more do, or the graph gives it."""
    readers = {use.node for use in value.uses()}
    if value.is_graph_output() or len(readers) != 1:
        return None
    (reader,) = readers
    return reader if reader.graph is value.graph else None


def holds(start: Part, needs: Callable[[Part], Iterable[Part] | None]) -> bool:
    """Whether something holds for `start` that holds for a part where it does for all that `needs` names.

    No recursion, and each part is looked at once: a graph may be deep and woven.

    Args:
        start: the first part: a value.
        needs: for what it must hold to hold for a part; None where it does not, whatever else is so.
    """
    todo, seen = [start], set[Part]()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        before = needs(part)
        if before is None:
            return False
        todo += before
    return True


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


def descendants(graph: ir.Graph, values: Iterable[ir.Value]) -> set[ir.Node]:
    """Every node of the main graph `graph` (in topological order, as ONNX has it) that depends on `values`.

    A node whose nested graphs capture one of them counts.
    """
    reached = set(values)
    found: set[ir.Node] = set()
    for node in graph:
        if any(value in reached for value in node_dependencies(node)):
            found.add(node)
            reached.update(node.outputs)
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
    return {*inputs, *drawn} | {value for node in descendants(graph, [*inputs, *drawn]) for value in node.outputs}


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
    _sort_initializers(graph, model.graph)
    taken = {value.name for value in graph.inputs} | {value.name for value in graph.outputs}
    move_aside(graph, (set(inputs.values()) | set(outputs.values())) - taken)
    for value, name in zip([*graph.inputs, *graph.outputs], [*inputs.values(), *outputs.values()], strict=True):
        value.name = name
    return with_graph(model, graph)


def move_aside(graph: ir.Graph, names: Iterable[str]) -> None:
    """Rename values of `graph` that stand in the way of `names` (a voice may call an initializer `z`)."""
    mapping = convenience.create_value_mapping(graph, include_subgraphs=False)
    for name in names:
        if name in mapping:
            value, fresh = mapping[name], f"{name}__original"
            while fresh in mapping:
                fresh += "_"
            if value.is_initializer():
                del graph.initializers[name]
                value.name = fresh
                graph.initializers[fresh] = value
            else:
                value.name = fresh


def with_graph(model: ir.Model, graph: ir.Graph) -> ir.Model:
    """A model like `model` (IR version, functions) around another graph."""
    return ir.Model(graph, ir_version=model.ir_version, functions=tuple(model.functions.values()))


def level_of_ratio(nodes: Sequence[ir.Node], start: Collection[ir.Value]) -> dict[ir.Value, int]:
    """How many steps of the time axis each value has for one step of `start` (1), by the strides on the way.

    A ConvTranspose multiplies by its stride, a Conv divides by it; other operators are taken to keep the length.

    Args:
        nodes: in topological order.
        start: values at the base rate.

    Returns:
        The ratio of every value that depends on `start`, keyed by value.

    Raises:
        ValueError: two inputs of a node have different ratios, a Conv leaves no whole one, or a ConvTranspose states
            an output_shape, which no rate follows from; the message names the node.
    """
    ratio = dict.fromkeys(start, 1)
    for node in nodes:
        rates = {ratio[value] for value in node.inputs if value in ratio}
        if not rates:
            continue
        if len(rates) > 1:
            raise ValueError(f"the node {node.name} ({node.op_type}) joins the rates {sorted(rates)}")
        ratio.update(dict.fromkeys(node.outputs, _rate_behind(node, rates.pop())))
    return ratio


def time_stride(node: ir.Node) -> int:
    """The stride along the last axis of a Conv or ConvTranspose (default 1, ONNX operator specification).

    Raises:
        ValueError: the attribute is no list of whole numbers above 0; the message names the node.
    """
    attribute = node.attributes.get("strides")
    if attribute is None:
        return 1
    strides = attribute.as_ints() if attribute.type == ir.AttributeType.INTS else ()
    if not strides or strides[-1] < 1:
        raise ValueError(f"the node {node.name} ({node.op_type}) has the strides {attribute.value}")
    return strides[-1]


def _graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    if attribute.type == ir.AttributeType.GRAPHS:
        return list(attribute.as_graphs())
    return []


def _rate_behind(node: ir.Node, rate: int) -> int:
    if not is_one_of(node, RATED):
        return rate
    if node.op_type == "ConvTranspose":
        if "output_shape" in node.attributes:
            raise ValueError(f"the node {node.name} (ConvTranspose) states an output_shape, so no rate follows")
        return rate * time_stride(node)
    if rate % time_stride(node):
        raise ValueError(f"the node {node.name} (Conv) takes the rate {rate} by a stride of {time_stride(node)}")
    return rate // time_stride(node)


def _sort_initializers(graph: ir.Graph, original: ir.Graph) -> None:
    """Put initializers in the order of `original`: onnx-ir's extraction leaves them in that of a set, which varies."""
    kept = [graph.initializers.pop(name) for name in original.initializers if name in graph.initializers]
    for value in kept:
        graph.register_initializer(value)
