"""Graphs with local functions, for the tests of `decompose_functions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx import AttributeProto, helper

from tests.gates.small_graphs import proto, tensor

X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])
DOMAIN = "local"


def call(
    name: str, inputs: Sequence[str], outputs: Sequence[str], label: str = "call", **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(name, list(inputs), list(outputs), label, domain=DOMAIN, **attributes)


def function(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    attributes: Sequence[str] = (),
    opset: int = 17,
) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_function(DOMAIN, name, list(inputs), list(outputs), list(nodes), opsets, list(attributes))


def graph(
    nodes: Sequence[onnx.NodeProto],
    functions: Sequence[onnx.FunctionProto],
    inputs: Sequence[onnx.ValueInfoProto] = (X,),
    outputs: Sequence[onnx.ValueInfoProto] = (Y,),
    weights: Sequence[onnx.TensorProto] = (),
) -> ir.Model:
    made = proto(nodes, inputs, outputs, weights)
    made.functions.extend(functions)
    made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return ir.from_proto(made)


def given(op: str, attribute: str, parameter: str, kind: Any, inputs: Sequence[str], output: str) -> onnx.NodeProto:
    """A node whose attribute is a parameter of the function around it."""
    node = helper.make_node(op, list(inputs), [output], "given")
    node.attribute.append(AttributeProto(name=attribute, ref_attr_name=parameter, type=kind))
    return node


TWICE = function("Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"], "add")])
FOUR_TIMES = function("Four", ["x"], ["y"], [call("Twice", ["x"], ["t"], "n1"), call("Twice", ["t"], ["y"], "n2")])


def unfolding(depth: int) -> ir.Model:
    """Functions of ten calls each, `depth` deep."""
    functions = [function("F0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"], "neg")])]
    for level in range(1, depth + 1):
        names = ["a", *(f"t{i}" for i in range(9)), "b"]
        calls = [call(f"F{level - 1}", [names[i]], [names[i + 1]], f"c{i}") for i in range(10)]
        functions.append(function(f"F{level}", ["a"], ["b"], calls))
    return graph([call(f"F{depth}", ["x"], ["y"])], functions)


def recursive() -> ir.Model:
    functions = [
        function("Ping", ["a"], ["b"], [call("Pong", ["a"], ["b"])]),
        function("Pong", ["a"], ["b"], [call("Ping", ["a"], ["b"])]),
    ]
    return graph([call("Ping", ["x"], ["y"])], functions)


def of_another_opset(op: str, opset: int = 12) -> ir.Model:
    """The graph is of opset 17."""
    old = function("Old", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"], "at")], opset=opset)
    return graph([call("Old", ["x"], ["y"])], [old])


def with_a_graph_parameter() -> ir.Model:
    body = given("If", "then_branch", "body", AttributeProto.GRAPH, ["a"], "b")
    chooses = function("Chooses", ["a"], ["b"], [body], ["body"])
    nested = helper.make_graph([helper.make_node("Neg", ["x"], ["n"], "neg")], "nested", [], [tensor("n", [1, 4])])
    return graph([call("Chooses", ["x"], ["y"], "call", body=nested)], [chooses])
