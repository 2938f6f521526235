"""Names for sentences, and shapes."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import helper

from contracts.errors import Refusal
from gates.graphs import node_label, with_shapes
from tests.gates.small_graphs import chain, model, tensor


@pytest.mark.parametrize(
    ("node", "label"),
    [
        (ir.node("Relu", [], name="act"), "node 'act'"),
        (ir.node("Relu", [], outputs=[ir.val("y")]), "the unnamed node that makes 'y'"),
        (ir.node("Relu", [], outputs=[]), "an unnamed node"),
    ],
)
def test_node_label_is_the_name_or_the_first_output(node: ir.Node, label: str) -> None:
    assert node_label(node) == label


def test_with_shapes_infers_on_a_copy_when_shapes_are_missing() -> None:
    made = chain("Tanh", "Relu", shape=(1, 7))
    shaped = with_shapes(made)
    assert [list(node.outputs[0].shape or []) for node in shaped.graph] == [[1, 7], [1, 7]]
    assert next(iter(made.graph)).outputs[0].shape is None


def test_with_shapes_computes_shapes_that_constants_give() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
    ]
    shaped = with_shapes(model(nodes, [tensor("x", [2, 3])], [tensor("y", ["a", "b"])]))
    assert list(shaped.graph.outputs[0].shape or []) == [2, 3]


def test_with_shapes_goes_on_behind_a_node_that_it_does_not_know() -> None:
    nodes = [helper.make_node("Blorp", ["x"], ["t"]), helper.make_node("Relu", ["x"], ["y"])]
    shaped = with_shapes(model(nodes, [tensor("x", [5])], [tensor("y", ["a"])]))
    assert [value.shape for value in next(iter(shaped.graph)).outputs] == [None]
    assert list(shaped.graph.outputs[0].shape or []) == [5]


def test_with_shapes_refuses_when_a_tensor_is_used_before_it_is_made() -> None:
    nodes = [helper.make_node("Relu", ["t"], ["y"], "late"), helper.make_node("Tanh", ["x"], ["t"])]
    with pytest.raises(Refusal, match=r"no valid ONNX.*used before it is made"):
        with_shapes(model(nodes, [tensor("x", [1])], [tensor("y", [1])]))
