"""Names across nested graphs, and what is left behind when a part of them goes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.scopes import drop_unused, fresh_node_name, fresh_value_name, names_of, nested_graphs, replace_value
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.graphs import check


def branches() -> ir.Model:
    """z = -x; y = If(c, z + w, z), the weight w inside the branch."""
    weight = helper.make_tensor("w", 1, [4], np.ones(4, np.float32))
    inner = tensor("t", [1, 4])
    then = helper.make_graph([helper.make_node("Add", ["z", "w"], ["t"], "inside")], "then", [], [inner], [weight])
    other = helper.make_graph([helper.make_node("Identity", ["z"], ["e"], "inside")], "else", [], [tensor("e", [1, 4])])
    nodes = [
        helper.make_node("Neg", ["x"], ["z"], "negated"),
        helper.make_node("Equal", ["s", "s0"], ["c"], "asked"),
        helper.make_node("If", ["c"], ["y"], "branch", then_branch=then, else_branch=other),
        helper.make_node("Abs", ["z"], ["unread"], "dead"),
        helper.make_node("Mul", ["unread", "k"], ["unread2"], "dead_too"),
    ]
    inputs = [tensor("x", [1, 4]), tensor("s", [1])]
    return model(nodes, inputs, [tensor("y", [1, 4])], [constant("k", np.ones(4)), constant("s0", np.ones(1))])


def test_names_are_counted_at_every_depth() -> None:
    names = names_of(branches().graph)
    assert (names["z"], names["w"], names["t"], names["k"], names["absent"]) == (1, 1, 1, 1, 0)
    assert fresh_node_name("inside", names) == "inside_2"
    assert fresh_node_name("fresh", names) == "fresh"


@pytest.mark.parametrize(("wanted", "got"), [("free", "free"), ("w", "w_2"), ("negated", "negated")])
def test_fresh_value_name_keeps_clear_of_values_and_is_taken_then(wanted: str, got: str) -> None:
    names = names_of(branches().graph)
    assert fresh_value_name(wanted, names) == got
    assert fresh_value_name(wanted, names) not in (wanted, got)


def test_drop_unused_takes_chains_and_their_weights_and_leaves_what_branches_read() -> None:
    made = branches()
    assert drop_unused(made.graph) == 3  # two nodes and a weight
    check(made)
    assert [node.name for node in made.graph] == ["negated", "asked", "branch"]
    assert list(made.graph.initializers) == ["s0"]
    assert len(list(nested_graphs(made.graph))) == 2


def test_replace_value_keeps_an_outputs_name_by_an_identity() -> None:
    made = branches()
    new = made.graph[0].outputs[0]
    identity = replace_value(made.graph.outputs[0], new, names_of(made.graph), "a_pass")
    assert identity is not None
    assert (identity.op_type, identity.inputs[0], identity.name) == ("Identity", new, "y/a_pass")
    assert made.graph.outputs[0] is identity.outputs[0]
    assert made.graph.outputs[0].name == "y"


def test_replace_value_needs_no_node_when_the_value_is_no_output() -> None:
    made = branches()
    old, new = made.graph[3].outputs[0], made.graph[0].outputs[0]
    assert replace_value(old, new, names_of(made.graph), "a_pass") is None
    assert made.graph[4].inputs[0] is new
