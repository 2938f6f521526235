"""What of a graph is of some types: what varies with its inputs, and the constants that this reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from surgery.scopes import graphs_of

TYPE_ATTRIBUTES = ("dtype", "output_datatype", "output_dtype", "precision", "softmax_precision", "stash_type", "to")
"""Integer attributes that name a data type (all operators of onnx.defs up to opset 28; a test looks)."""

_SIZES = frozenset({"Shape", "Size"})
"""Read the shape of their input, which is fixed, and none of its values."""


def stated_types(model: ir.Model) -> Iterator[ir.DataType]:
    """The types of inputs, weights and tensors in attributes, and those that attributes name."""
    for graph in model.graphs():
        yield from (value.dtype for value in (*graph.inputs, *graph.initializers.values()) if value.dtype is not None)
        for node in graph:
            for name, attribute in node.attributes.items():
                if name in TYPE_ATTRIBUTES and attribute.type == ir.AttributeType.INT:
                    yield data_type(attribute.as_int())
                elif attribute.type == ir.AttributeType.TENSOR:
                    yield attribute.as_tensor().dtype


def data_type(number: int) -> ir.DataType:
    """The type that ONNX gives this `number`; UNDEFINED where it gives it to none."""
    known = {int(kind) for kind in ir.DataType}
    return ir.DataType(number) if number in known else ir.DataType.UNDEFINED


def is_fed(value: ir.Value, graph: ir.Graph) -> bool:
    """Whether the input `value` of `graph` has no weight of its own to fall back on."""
    return value.name not in graph.initializers


def inner_inputs(graph: ir.Graph, types: Collection[ir.DataType]) -> list[ir.Value]:
    """The inputs of nested graphs (a Loop's) that are of `types`."""
    return [value for inner in graph.subgraphs() for value in inner.inputs if value.dtype in types]


def varying_nodes(model: ir.Model) -> dict[ir.Node, None]:
    """The nodes whose values depend on an input or on chance, in order; a node with nested graphs counts as one."""
    varying = {value for value in model.graph.inputs if is_fed(value, model.graph)}
    for graph in model.graph.subgraphs():
        varying.update(graph.inputs)
    found: dict[ir.Node, None] = {}
    for node in model.graph.all_nodes():
        nests = any(kind.type in _GRAPHS for kind in node.attributes.values())
        drawn = node.op_type in _RANDOM
        if drawn or nests or (node.op_type not in _SIZES and any(value in varying for value in node.inputs)):
            found[node] = None
            varying.update(node.outputs)
    return found


_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
_RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})


def constants_of(nodes: dict[ir.Node, None], types: Collection[ir.DataType]) -> list[ir.Value]:
    """What varying nodes read, or nested graphs give, that is of `types` and does not vary."""
    read = [value for node in nodes for value in node.inputs]
    read += [value for node in nodes for graph in graphs_of(node) for value in graph.outputs]
    constant = [
        value
        for value in read
        if value is not None
        and value.dtype in types
        and (value.is_initializer() or (value.producer() is not None and value.producer() not in nodes))
    ]
    return list(dict.fromkeys(constant))
