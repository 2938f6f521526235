"""Put new nodes in the place of one, under names that say which pass made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir import convenience

from surgery.graph import graph_of
from surgery.naming import node_stem
from surgery.scopes import graphs_of


class Draft:
    """Nodes that are to stand for others, in order; nothing is in a graph before `splice`."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []

    def add(
        self,
        op: str,
        *inputs: ir.Value | None,
        outputs: int = 1,
        copied: Mapping[str, ir.Attr | None] | None = None,
        **attributes: Any,
    ) -> ir.Value:
        """A node of ONNX's own domain with `copied` attributes and further ones; returns its first output.

        An attribute that is None is left out.
        """
        stated = {name: value for name, value in {**(copied or {}), **attributes}.items() if value is not None}
        made = ir.node(op, inputs, attributes=stated, num_outputs=outputs)
        self.nodes.append(made)
        return made.outputs[0]


def constant(values: Any, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    """A weight that `splice` will name and put into the graph."""
    array = np.asarray(values, dtype.numpy())
    tensor = ir.tensor(array, dtype=dtype)
    return ir.Value(type=ir.TensorType(dtype), shape=ir.Shape(array.shape), const_value=tensor)


def whole_numbers(values: Sequence[int]) -> ir.Value:
    """A list of sizes, axes or pads: int64 [n]."""
    return constant(np.array(values, np.int64), ir.DataType.INT64)


def splice(node: ir.Node, nodes: Sequence[ir.Node], outputs: Sequence[ir.Value], made_by: str) -> None:
    """Put `nodes` in the place of `node`; `outputs` stand for its outputs and take their names.

    Args:
        node: in a graph. It is removed.
        nodes: in topological order, in no graph. They may read any value visible to `node`, and new constants.
        outputs: one for each output of `node` that has a name.
        made_by: the pass, for the names of the new nodes and values.
    """
    graph = graph_of(node)
    label, stem = f"{node_stem(node)}/{made_by}", f"{_named(node)[0].name}.{made_by}"
    for number, made in enumerate(_with_nested(nodes)):
        name_drafted(graph, made, f"{label}.{made.op_type}.{number}", f"{stem}.{number}")
    convenience.replace_nodes_and_values(graph, node, [node], nodes, _named(node), outputs)


def name_drafted(graph: ir.Graph, made: ir.Node, name: str, stem: str) -> None:
    """Give `made` its `name`, its outputs names that begin with `stem`, and put its new constants into `graph`."""
    made.name = name
    for place, value in enumerate(made.outputs):
        value.name = f"{stem}.{place}"
    for place, read in enumerate(made.inputs):
        if read is not None and read.const_value is not None and read.graph is None and read.producer() is None:
            read.name = f"{stem}.c{place}"
            graph.register_initializer(read)


def _named(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.outputs if value.name]


def _with_nested(nodes: Sequence[ir.Node]) -> Iterator[ir.Node]:
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from graph.all_nodes()
