"""Give every nested graph outputs of its own, right after a file is read.

Before: a branch that puts out a value from outside, or one value twice. After: an Identity in the branch makes it.
onnxruntime refuses the first ("Subgraph output is an outer scope value"), and onnx-ir reads it as a value that nothing
makes, which it can then not copy. Exact: an Identity computes nothing.
"""

from __future__ import annotations

from collections import ChainMap

import onnx_ir as ir

from surgery.scopes import Names, fresh_node_name, fresh_value_name, graphs_of, names_of

_Scope = ChainMap[str, ir.Value]


def own_branch_outputs(model: ir.Model) -> int:
    """Change `model`, as it was read, in place; returns how many outputs needed it."""
    return _visit(model.graph, ChainMap(), names_of(model.graph))


def _visit(graph: ir.Graph, outside: _Scope, names: Names) -> int:
    inside: dict[str, ir.Value] = {value.name or "": value for value in graph.inputs}
    inside.update(graph.initializers)
    count = 0
    for node in graph:
        for nested in graphs_of(node):
            count += _own(nested, outside.new_child(inside), names)
            count += _visit(nested, outside.new_child(inside), names)
        inside.update({value.name: value for value in node.outputs if value.name})
    return count


def _own(nested: ir.Graph, outside: _Scope, names: Names) -> int:
    """Put an Identity behind each output of `nested` that it does not make itself, or puts out before."""
    own = {value for node in nested for value in node.outputs} | set(nested.initializers.values()) | set(nested.inputs)
    count = 0
    for position, value in enumerate(nested.outputs):
        source = value if value in own else outside.get(value.name or "")
        if source is None or (source is value and value not in list(nested.outputs)[:position]):
            continue
        name = f"{value.name}/branch_outputs"
        output = ir.Value(name=fresh_value_name(name, names), type=value.type, shape=value.shape)
        nested.append(ir.Node("", "Identity", [source], outputs=[output], name=fresh_node_name(name, names)))
        nested.outputs[position] = output
        count += 1
    return count
