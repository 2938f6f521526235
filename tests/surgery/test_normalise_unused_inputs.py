from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from surgery.normalise_unused_inputs import normalise_unused_inputs
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import WEIGHT, applied, conv, left_alone, names, node, noise, operators, same

X, Y = tensor("x", [1, 4, 9]), tensor("y", [1, 4, 9])


def test_normalise_unused_inputs_drops_what_no_node_reads() -> None:
    original = model([conv("x", "y")], [tensor("u", [1]), X, tensor("v", [2], TensorProto.INT64)], [Y], [WEIGHT])
    done = applied(normalise_unused_inputs(), original)
    assert (done.hits, done.interface.removed, names(done.model.graph.inputs)) == (2, ("u", "v"), ["x"])
    x = noise(1, 4, 9)
    assert_same_without(original, done.model, x)


def assert_same_without(original: object, after: object, x: object) -> None:
    import numpy as np

    dead = {"u": np.ones(1, np.float32), "v": np.ones(2, np.int64)}
    same(original, after, {**dead, "x": x}, {"x": x})  # type: ignore[arg-type, dict-item]


def test_normalise_unused_inputs_drops_dead_nodes_and_their_weights_when_only_they_read_an_input() -> None:
    nodes = [conv("x", "y"), node("Mul", "u k", "d0"), node("Add", "d0 x", "d1")]
    original = model(nodes, [X, tensor("u", [1])], [Y], [WEIGHT, constant("k", [2.0])])
    done = applied(normalise_unused_inputs(), original)
    assert (done.hits, done.interface.removed, operators(done.model)) == (1, ("u",), ["Conv"])
    assert list(done.model.graph.initializers) == ["w"]


def test_normalise_unused_inputs_leaves_dead_nodes_alone_when_every_input_is_used() -> None:
    left_alone(normalise_unused_inputs(), model([conv("x", "y"), node("Tanh", "x", "d")], [X], [Y], [WEIGHT]))


def test_normalise_unused_inputs_keeps_an_input_when_it_is_an_output() -> None:
    original = model([conv("x", "y")], [X, tensor("p", [1])], [Y, tensor("p", [1])], [WEIGHT])
    left_alone(normalise_unused_inputs(), original)


def test_normalise_unused_inputs_keeps_an_input_when_only_a_branch_captures_it() -> None:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, "u", f"b_{op}")], op, [], [tensor(f"b_{op}", [1])])

    nodes = [node("If", "cond", "i", then_branch=branch("Tanh"), else_branch=branch("Neg")), node("Add", "x i", "y")]
    original = model(nodes, [X, tensor("u", [1]), tensor("cond", [], TensorProto.BOOL)], [Y])
    left_alone(normalise_unused_inputs(), original)


def test_normalise_unused_inputs_drops_every_input_when_the_output_is_a_constant() -> None:
    nodes = [node("Tanh", "k", "y"), node("Neg", "x", "d")]
    done = applied(normalise_unused_inputs(), model(nodes, [X], [tensor("y", [1])], [constant("k", [1.0])]))
    assert (done.hits, names(done.model.graph.inputs)) == (1, [])
