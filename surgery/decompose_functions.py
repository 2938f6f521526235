"""Put the nodes of local functions in the place of their calls.

Before: a call of a function that the model defines (torch's newer exporter writes them, and onnxscript). After: the
nodes of its body, those of the functions that it calls in turn as well; no functions are left.

Preconditions: functions of operators that mean the same in the model's opset, without graphs as parameters, that do not
call themselves, and that do not unfold to more nodes than a limit: ten functions of ten calls are ten billion nodes.

Exact: a call means its body.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Iterator

import onnx_ir as ir
from onnx import defs
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.matching import ONNX_DOMAINS, opset_of
from surgery.naming import node_label
from surgery.scopes import graphs_of, name_nodes

MOST_NODES = 100_000
"""Most nodes after the calls are replaced; the largest speech model seen here, Kokoro, has some 3 000."""

A_VERSION = "functions of operators that mean the same in the model's opset"
NO_GRAPH_PARAMETERS = "functions whose parameters are no graphs"
NOT_RECURSIVE = "functions that do not call themselves"
A_SIZE = "functions that unfold to a graph that can be compiled"

DECLARATION = Declaration(
    name="decompose_functions",
    summary="put the nodes of local functions in the place of their calls",
    exactness=Exact("a call of a function means its body (ONNX specification, Functions)"),
    preconditions=(A_VERSION, NO_GRAPH_PARAMETERS, NOT_RECURSIVE, A_SIZE),
)


def decompose_functions() -> Pass:
    """The pass; its hits are the functions and their calls."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not model.functions:
            return Rewritten(model, 0)
        refused = tuple(_refused(model))
        if refused:
            return Rewritten(model, 0, refused)
        inlined = model.clone()
        for function in inlined.functions.values():
            _separate_outputs(function)
            for domain in function.opset_imports:  # checked above: they mean the same
                own = opset_of(model) if domain in ONNX_DOMAINS else model.opset_imports.get(domain)
                function.opset_imports[domain] = own or function.opset_imports[domain]
        calls = _calls(inlined, _every_node(inlined))
        _complete_outputs(inlined, calls)
        hits = len(calls) + len(inlined.functions)
        common.InlinePass()(inlined)
        inlined.functions.clear()  # those that nothing called
        name_nodes(inlined.graph)
        common.NameFixPass()(inlined)  # of values in nested graphs, which the inliner does not look into first
        return Rewritten(inlined, hits)

    return Pass(DECLARATION, rewrite)


def _refused(model: ir.Model) -> Iterator[Refused]:
    opset = opset_of(model)
    for function in model.functions.values():
        version = opset_of(function)
        changed = {node.op_type for node in _nodes_of(function) if _means_another(node, version, opset)}
        if changed:
            got = f"it uses {', '.join(sorted(changed))} of opset {version}"
            yield Refused(_label(function), A_VERSION, f"opset {opset}", got)
    for call in _calls(model, _every_node(model)):
        if any(True for _ in graphs_of(call)):
            yield Refused(node_label(call), NO_GRAPH_PARAMETERS, "a call without graphs", "it passes one")
    called = {name: _calls(model, _nodes_of(function)) for name, function in model.functions.items()}
    order = graphlib.TopologicalSorter(
        {name: {call.op_identifier() for call in calls} for name, calls in called.items()}
    )
    try:
        names = list(order.static_order())
    except graphlib.CycleError as error:
        function = model.functions[error.args[1][0]]
        yield Refused(
            _label(function), NOT_RECURSIVE, "an end", f"it comes back to itself through {len(error.args[1]) - 1}"
        )
        return
    sizes: dict[ir.OperatorIdentifier, int] = {}
    for name in names:
        sizes[name] = sum(sizes.get(node.op_identifier(), 1) for node in _nodes_of(model.functions[name]))
    total = sum(sizes.get(node.op_identifier(), 1) for node in _nodes_of(model.graph))
    if total > MOST_NODES:
        yield Refused("the graph", A_SIZE, f"at most {MOST_NODES} nodes", f"its functions unfold to {total} nodes")


def _means_another(node: ir.Node, version: int, opset: int) -> bool:
    """Whether an operator of ONNX's own was changed between the two opsets."""
    if version == opset or node.domain not in ONNX_DOMAINS:
        return False
    try:
        return _since(node, version) != _since(node, opset)
    except defs.SchemaError:  # there is no such operator in one of them
        return True


def _since(node: ir.Node, opset: int) -> int:
    return defs.get_schema(node.op_type, opset, "").since_version


def _nodes_of(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """`nodes` and those of the graphs nested in them; onnx-ir's own walk breaks on a graph that is a parameter."""
    for node in nodes:
        yield node
        for nested in graphs_of(node):
            yield from _nodes_of(nested)


def _every_node(model: ir.Model) -> Iterator[ir.Node]:
    for part in (model.graph, *model.functions.values()):
        yield from _nodes_of(part)


def _calls(model: ir.Model, nodes: Iterable[ir.Node]) -> list[ir.Node]:
    return [node for node in nodes if node.op_identifier() in model.functions]


def _separate_outputs(function: ir.Function) -> None:
    """Give each output of `function` a node of its own: an inlined value takes the name of the call's output."""
    seen = set(function.inputs)
    for position, value in enumerate(function.outputs):
        if value in seen:
            copy = ir.Node("", "Identity", [value], name=f"{function.name}/{DECLARATION.name}")
            copy.outputs[0].name = f"{value.name}/{DECLARATION.name}_{position}"
            function.append(copy)
            function.outputs[position] = copy.outputs[0]
        seen.add(value)


def _complete_outputs(model: ir.Model, calls: Iterable[ir.Node]) -> None:
    """Add and name the outputs that a call leaves out: the inliner wants all, and the value may be needed inside."""
    for count, call in enumerate(calls):
        call.resize_outputs(len(model.functions[call.op_identifier()].outputs))
        for position, value in enumerate(call.outputs):
            value.name = value.name or f"{DECLARATION.name}/{call.op_type}_{count}_{position}"


def _label(function: ir.Function) -> str:
    return f"function '{function.name}'"
