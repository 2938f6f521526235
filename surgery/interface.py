"""What the passes over a graph's inputs and outputs share: sizes and types, names, and tensors that change places."""

from __future__ import annotations

import math

import onnx_ir as ir

from surgery.matching import Matched, is_one_of

LARGEST_TENSOR = 1 << 27
"""Most values of a tensor that a pass brings in: half a GiB of float32, and a window's tensors take some MB (Piper's
whole engine 43, toolkit-facts). A file may claim any size, and a comparison would draw and hold it."""


def is_reasonable(shape: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` holds something, and no more than `LARGEST_TENSOR` values."""
    return min(shape, default=1) > 0 and math.prod(shape) <= LARGEST_TENSOR


def numpy_dtype(value: ir.Value) -> str:
    """The name of the dtype of `value` ("float32"), which is float32 where the graph does not say."""
    return "float32" if value.dtype is None else str(value.dtype.numpy().name)


def fresh_name(graph: ir.Graph, wanted: str) -> str:
    """`wanted`, or with underscores behind it where `graph`, or a graph inside it, has such a value already."""
    names = {value.name for node in graph.all_nodes() for value in (*node.outputs, *node.inputs) if value is not None}
    names |= {value.name for value in (*graph.inputs, *graph.outputs, *graph.initializers.values())}
    while wanted in names:
        wanted += "_"
    return wanted


def insert_behind(graph: ir.Graph, node: ir.Node, source: ir.Value) -> None:
    """Put `node` into `graph` right behind what makes `source`: first of all where that is no node."""
    producer = source.producer()
    if producer is not None:
        graph.insert_after(producer, node)
    elif len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)


def put_before_output(graph: ir.Graph, output: ir.Value, node: ir.Node, aside: str) -> ir.Value:
    """Make `node` (of one output and without a first input) what gives the graph output `output`, of a node.

    The output keeps its name, and every other reader what it read, now called `aside`. An Identity that did nothing but
    give the output its name goes.

    Returns:
        The new output, of no shape yet.
    """
    name, made = output.name, node.outputs[0]
    naming = output.producer()
    output.name = fresh_name(graph, aside)
    made.name, made.type = name, output.type
    node.replace_input_with(0, output)
    insert_behind(graph, node, output)
    for position, value in enumerate(graph.outputs):
        if value is output:
            graph.outputs[position] = made
    source = naming.inputs[0] if naming is not None and is_one_of(naming, (Matched("Identity"),)) else None
    if naming is not None and source is not None:
        output.replace_all_uses_with(source)
        graph.remove(naming, safe=True)
    return made
