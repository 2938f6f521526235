"""Graphs with an If, for the tests of `fold_constants`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.branch_outputs import own_branch_outputs
from tests.gates.small_graphs import constant, model, tensor

SHAPE = (1, 4)
X, Y = tensor("x", SHAPE), tensor("y", SHAPE)
HOLDS = constant("holds", True, np.bool_)
FAILS = constant("fails", False, np.bool_)


def branch(
    nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], weights: Sequence[onnx.TensorProto] = ()
) -> onnx.GraphProto:
    """A branch; its outputs are of the shape of `x`."""
    return helper.make_graph(nodes, "branch", [], [tensor(name, SHAPE) for name in outputs], weights)


def if_node(
    condition: str, then: onnx.GraphProto, other: onnx.GraphProto, outputs: Sequence[str] = ("i",), name: str = "if0"
) -> onnx.NodeProto:
    return helper.make_node("If", [condition], list(outputs), name, then_branch=then, else_branch=other)


def one(op: str, inputs: Sequence[str], output: str, name: str | None = None, **attributes: Any) -> onnx.GraphProto:
    """A branch of one node."""
    return branch([helper.make_node(op, list(inputs), [output], name or f"in_{op}", **attributes)], [output])


def graph(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto] = (),
    inputs: Sequence[onnx.ValueInfoProto] = (X,),
    outputs: Sequence[onnx.ValueInfoProto] = (Y,),
    opset: int = 17,
) -> ir.Model:
    made = model(nodes, inputs, outputs, weights, opset=opset)
    own_branch_outputs(made)
    return made


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    """A node called after what it makes."""
    return helper.make_node(op, list(inputs), [output], f"make_{output}", **attributes)


def chosen() -> tuple[onnx.GraphProto, onnx.GraphProto]:
    """then: c * k; else: c."""
    return one("Mul", ["c", "k"], "t"), one("Identity", ["c"], "f")


C = node("Tanh", ["x"], "c")
OUT = node("Neg", ["i"], "y")
K_ROW = [0.5, 2, 3, 4]
K = constant("k", [K_ROW])


def computed_condition(size: int) -> list[onnx.NodeProto]:
    """cond: whether the last axis of `x` is `size`, as torch exports squeeze(-1)."""
    return [
        node("Shape", ["x"], "shape"),
        node("Constant", [], "last", value_int=1),
        node("Gather", ["shape", "last"], "size", axis=0),
        node("Constant", [], "wanted", value_int=size),
        node("Equal", ["size", "wanted"], "cond"),
    ]


def nested() -> ir.Model:
    """An If in a branch of an If, which reads values of both graphs around it; names are used twice."""
    inner = if_node("fails", one("Add", ["t", "c"], "f"), one("Mul", ["t", "k"], "t2"), ["deep"], "if0")
    then = branch([helper.make_node("Exp", ["c"], ["t"], "then"), inner], ["deep"], [FAILS])
    return graph([C, if_node("holds", then, one("Abs", ["c"], "t")), OUT], [HOLDS, K])


def weights_of_one_name() -> ir.Model:
    """Each branch of two Ifs has a weight `w` and makes `t`; `w` is one of the graph's as well."""

    def scaled(factor: float, source: str) -> onnx.GraphProto:
        return branch([helper.make_node("Mul", [source, "w"], ["t"], "mul")], ["t"], [constant("w", [factor])])

    nodes = [
        C,
        if_node("holds", scaled(2, "c"), scaled(3, "c"), ["i"], "if0"),
        if_node("fails", scaled(5, "i"), scaled(7, "i"), ["j"], "if1"),
        helper.make_node("Add", ["j", "w"], ["y"], "mul"),
    ]
    return graph(nodes, [HOLDS, FAILS, constant("w", [11.0])])


def captured_outputs() -> ir.Model:
    """A branch that puts out values from outside: a node's, a graph input, a weight, and one value twice."""
    outputs = ["y", "y_in", "y_weight", "y_own", "y_first", "y_again"]
    then = branch(
        [helper.make_node("Exp", ["c"], ["t"], "exp")], ["c", "x", "k", "v", "t", "t"], [constant("v", [K_ROW])]
    )
    names = [f"e{i}" for i in range(6)]
    other = branch([helper.make_node("Neg", ["c"], [name], f"n{name}") for name in names], names)
    return graph(
        [C, if_node("holds", then, other, outputs)], [HOLDS, K], outputs=[tensor(name, SHAPE) for name in outputs]
    )


def dynamic() -> ir.Model:
    """An If that depends on the data, with a constant one inside."""
    inner = if_node("holds", one("Exp", ["c"], "a"), one("Abs", ["c"], "b"), ["deep"], "if1")
    nodes = [C, if_node("cond", branch([inner], ["deep"]), one("Neg", ["c"], "n")), OUT]
    return graph(nodes, [HOLDS], [X, tensor("cond", [], TensorProto.BOOL)])


def in_loop() -> ir.Model:
    """A Loop of two steps whose body has an If of a constant condition."""
    body = helper.make_graph(
        [
            if_node("holds", one("Add", ["carried", "k"], "a"), one("Mul", ["carried", "k"], "b"), ["next"]),
            helper.make_node("Identity", ["going"], ["on"], "on"),
        ],
        "body",
        [tensor("step", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL), tensor("carried", SHAPE)],
        [tensor("on", [], TensorProto.BOOL), tensor("next", SHAPE)],
    )
    loop = helper.make_node("Loop", ["count", "holds", "c"], ["i"], "loop", body=body)
    return graph([C, loop, OUT], [HOLDS, K, constant("count", 2, np.int64)])
