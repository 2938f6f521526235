"""What is wrong with a graph that could be read: names that are no text, values that nothing makes, circles.

A file of which a few bytes were lost or changed often still reads as an ONNX.
"""

from __future__ import annotations

import onnx_ir as ir


def sort_or_fault(model: ir.Model) -> str | None:
    """Bring the nodes of `model` into topological order; a clause that says what is wrong where there is none."""
    nodes = [*model.graph.all_nodes(), *(node for f in model.functions.values() for node in f.all_nodes())]
    for node in nodes:
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        texts = [node.name, node.op_type, node.domain, *(value.name for value in values), *node.attributes]
        unreadable = next((text for text in texts if not isinstance(text, str | None)), None)
        if unreadable is not None:
            return f"the name {unreadable!r} is no text"
        untyped = next((a for a in node.attributes.values() if a.type == ir.AttributeType.UNDEFINED), None)
        if untyped is not None:
            return f"the attribute {untyped.name} of the node {node.name or node.op_type} has no type"
        missing = next((value for value in values if not _is_made(value)), None)
        if missing is not None:
            return f"the node {node.name or node.op_type} reads {missing.name}, which nothing makes"
    for node in model.graph.all_nodes():
        if reference := next((a for a in node.attributes.values() if a.is_ref()), None):
            return f"the attribute {reference.name} of the node {node.name or node.op_type} refers to no function's"
    outside = [*model.graph.inputs, *model.graph.outputs]
    unreadable = next((value.name for value in outside if not isinstance(value.name, str)), None)
    if unreadable is not None:
        return f"the name {unreadable!r} is no text"
    missing = next((value for value in model.graph.outputs if not _is_made(value)), None)
    if missing is not None:
        return f"nothing makes the output {missing.name}"
    try:
        model.graph.sort()
        for function in model.functions.values():
            function.sort()
    except ValueError:
        return "its nodes depend on each other in a circle"
    return None


def _is_made(value: ir.Value) -> bool:
    return value.producer() is not None or value.is_graph_input() or value.is_initializer()
