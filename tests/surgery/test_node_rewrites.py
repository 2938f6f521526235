"""All nodes that are to be rewritten, or none."""

from __future__ import annotations

import onnx_ir as ir
from onnx import helper

from surgery.declaration import Refused, Rewritten
from surgery.node_rewrites import let_stand, rewrite_in_turn, rewrite_nodes
from tests.gates.small_graphs import model, tensor
from tests.surgery.graphs import serialised

FAULT = Refused("node 'second'", "a precondition", "a limit", "something else")


def chain() -> ir.Model:
    """Three Relus, in the middle a shape that nobody states."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Neg", ["b"], ["y"], "third"),
    ]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, "n"])])


def is_relu(node: ir.Node) -> bool:
    return node.op_type == "Relu"


def rename(node: ir.Node) -> None:
    node.name = f"{node.name}, rewritten"


def names(done: Rewritten) -> list[str | None]:
    return [node.name for node in done.model.graph]


def test_every_planned_node_of_a_copy_is_written_when_none_is_refused() -> None:
    original = chain()
    before = serialised(original)
    done = rewrite_nodes(original, is_relu, lambda node: node, rename)
    assert (done.hits, done.refused) == (2, ())
    assert names(done) == ["first, rewritten", "second, rewritten", "third"]
    assert serialised(original) == before


def test_nothing_is_written_when_one_node_is_refused() -> None:
    original = chain()
    done = rewrite_nodes(original, is_relu, lambda node: FAULT if node.name == "second" else node, rename)
    assert done == Rewritten(original, 0, (FAULT,))
    assert names(done) == ["first", "second", "third"]


def test_the_very_model_comes_back_when_no_node_has_a_plan() -> None:
    original = chain()
    assert rewrite_nodes(original, is_relu, lambda _: None, rename).model is original
    assert rewrite_nodes(original, lambda _: False, lambda node: node, rename).model is original


def test_shapes_are_known_to_the_plan_and_not_left_in_the_graph() -> None:
    seen = []

    def plan(node: ir.Node) -> ir.Node:
        seen.append([tuple(value.shape or ()) for value in node.outputs])
        return node

    done = rewrite_nodes(chain(), lambda node: node.op_type != "Relu", plan, rename)
    assert seen == [[(1, 4)]]
    assert [str(node.outputs[0].shape) for node in done.model.graph] == ["None", "None", "[1,n]"]


def drop(node: ir.Node) -> None:
    (given,) = node.inputs
    assert given is not None
    let_stand(given, node)


def behind_a_relu(node: ir.Node) -> ir.Node | None:
    """A Relu behind another goes."""
    before = None if node.inputs[0] is None else node.inputs[0].producer()
    return node if before is not None and is_relu(before) else None


def test_plans_follow_from_what_was_written_when_they_are_written_in_turn() -> None:
    original = chain()
    before = serialised(original)
    done = rewrite_in_turn(original, is_relu, behind_a_relu, drop)
    assert (done.hits, names(done)) == (1, ["first", "third"])
    assert serialised(original) == before
    assert [str(node.outputs[0].shape) for node in done.model.graph] == ["None", "[1,n]"]


def test_an_earlier_node_is_looked_at_again_when_a_later_one_was_written() -> None:
    original = chain()

    def plan(node: ir.Node) -> ir.Node | None:
        """A Relu goes once no Relu reads it."""
        return None if any(is_relu(reader) for reader in node.outputs[0].consumers()) else node

    done = rewrite_in_turn(original, is_relu, plan, drop)
    assert (done.hits, names(done)) == (2, ["third"])


def test_the_very_model_comes_back_when_nothing_is_written_in_turn() -> None:
    original = chain()
    assert rewrite_in_turn(original, is_relu, lambda _: None, drop).model is original
    assert rewrite_in_turn(original, lambda _: False, lambda node: node, drop).model is original


def test_output_keeps_name_shape_and_type_when_another_value_stands_for_it() -> None:
    original = chain()
    done = rewrite_in_turn(original, lambda node: node.op_type == "Neg", lambda node: node, drop)
    assert names(done) == ["first", "second"]
    (output,) = done.model.graph.outputs
    assert (output.name, str(output.shape), output.dtype) == ("y", "[1,n]", ir.DataType.FLOAT)
