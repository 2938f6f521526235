"""Nodes in the place of one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx import helper

from surgery.splice import Draft, constant, splice, whole_numbers
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check


def split() -> ir.Model:
    """a, _, b = Split(x), y = a + b; b is an output as well."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "", "b"], "cut", axis=1),
        helper.make_node("Add", ["a", "b"], ["y"], "sum"),
    ]
    return model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 1]), tensor("b", [2, 1])])


def test_splice_puts_named_nodes_and_weights_where_the_node_was() -> None:
    made = split()
    node, draft = made.graph[0], Draft()
    x = node.inputs[0]
    first = draft.add("Slice", x, whole_numbers([0]), whole_numbers([1]), whole_numbers([1]))
    last = draft.add("Gather", draft.add("Mul", x, constant([2.0])), whole_numbers([2]), axis=1)
    splice(node, draft.nodes, [first, last], "a_pass")
    check(made)
    assert [node.name for node in made.graph] == [
        "cut/a_pass.Slice.0",
        "cut/a_pass.Mul.1",
        "cut/a_pass.Gather.2",
        "sum",
    ]
    assert sorted(made.graph.initializers) == [
        "a.a_pass.0.c1",
        "a.a_pass.0.c2",
        "a.a_pass.0.c3",
        "a.a_pass.1.c1",
        "a.a_pass.2.c1",
    ]
    x_values = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = run(made, {"x": x_values})
    np.testing.assert_array_equal(got["y"], x_values[:, :1] + 2 * x_values[:, 2:])
    np.testing.assert_array_equal(got["b"], 2 * x_values[:, 2:])


def test_draft_leaves_out_what_is_none_and_takes_over_what_is_copied() -> None:
    copied = {"axis": ir.AttrInt64("axis", 1), "keepdims": ir.AttrInt64("keepdims", 0)}
    draft = Draft()
    draft.add("ReduceMax", ir.Value(name="x"), copied=copied, keepdims=1, axes=None)
    (node,) = draft.nodes
    assert {name: attribute.value for name, attribute in node.attributes.items()} == {"axis": 1, "keepdims": 1}
    assert node.graph is None
