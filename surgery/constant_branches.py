"""The branch that an If of a constant condition takes, put in its place.

Before: c0 -> If(cond = true, then: Mul(c0, k) -> t) -> i. After: c0 -> Mul(c0, k) -> i.
A nested graph sees the values around it, so its nodes mean the same outside. A name that is taken there gets a suffix.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.matching import ONNX_DOMAINS
from surgery.node_types import is_constant
from surgery.scopes import Names, fresh_node_name, fresh_value_name, named, names_of, node_key, release, replace_value


def taken_branch(node: ir.Node) -> tuple[str, str] | None:
    """The attribute with the branch that `node` takes, and that of the other; None but for an If of a known branch."""
    if node.op_type != "If" or node.domain not in ONNX_DOMAINS or len(node.inputs) != 1:
        return None
    condition = node.inputs[0]
    if condition is None or not is_constant(condition) or condition.const_value is None:
        return None
    value = condition.const_value
    if value.dtype != ir.DataType.BOOL or value.size != 1 or not _is_whole(node):
        return None
    return ("then_branch", "else_branch") if value.numpy().reshape(-1)[0] else ("else_branch", "then_branch")


def inline_branch(node: ir.Node, taken: str, other: str, names: Names, made_by: str) -> None:
    """Replace `node`, an If, by the nodes of its branch `taken`, directly behind it; keep `names` up to date.

    An output of the branch that one of its nodes makes has the If's name for it then. One that is a weight takes the
    place of the If's (`surgery.scopes.replace_value`).
    """
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    dropped = node.attributes[other].as_graph()
    names.subtract(names_of(dropped))
    release(dropped)
    branch = node.attributes[taken].as_graph()
    results, body = list(branch.outputs), list(branch)
    branch.outputs.clear()
    branch.remove(body)
    for name, weight in list(branch.initializers.items()):
        del branch.initializers[name]
        _rename(weight, names)
        graph.register_initializer(weight)
    for inner in body:
        _rename_node(inner, names, f"{node.name or 'If'}/{inner.name}")
        for value in inner.outputs:
            _rename(value, names)
    graph.insert_after(node, body)
    inside = {value for inner in body for value in inner.outputs}
    passed: list[ir.Node] = []
    for made, result in zip(node.outputs, results, strict=True):
        if not made.name:
            continue
        result.type, result.shape = result.type or made.type, result.shape or made.shape
        if result in inside:  # takes the name; a second output of the same value is one from outside
            inside.remove(result)
            names[result.name or ""] -= 1
            result.name = made.name
            made.replace_all_uses_with(result, replace_graph_outputs=True)
        else:
            identity = replace_value(made, result, names, made_by)
            passed.extend([identity] if identity is not None else [])
    graph.insert_after(body[-1] if body else node, passed)
    graph.remove(node, safe=True)


def _is_whole(node: ir.Node) -> bool:
    """Whether both branches are there and give what the If puts out."""
    branches = [node.attributes.get(name) for name in ("then_branch", "else_branch")]
    return all(
        one is not None and one.type == ir.AttributeType.GRAPH and len(one.as_graph().outputs) == len(node.outputs)
        for one in branches
    )


def _rename(value: ir.Value, names: Names) -> None:
    if value.name and names[value.name] > 1:
        names[value.name] -= 1
        name = fresh_value_name(value.name, names)
        if value.const_value is not None:
            value.const_value = named(value.const_value, name)
        value.name = name


def _rename_node(node: ir.Node, names: Names, name: str) -> None:
    if node.name and names[node_key(node.name)] > 1:
        names[node_key(node.name)] -= 1
        node.name = fresh_node_name(name, names)
