from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.normalise_header import normalise_header
from surgery.parting import draws, part_up_to, parting
from tests.gates.small_graphs import constant, tensor
from tests.gates.small_graphs import model as small_model
from tests.onnx_runs import open_session


def graph(
    factor: float = 2.0, slope: float = 0.1, op: str = "LeakyRelu", opset: int | None = None, swapped: bool = False
) -> ir.Model:
    """y = LeakyRelu(x - k)."""
    operands = ["k", "x"] if swapped else ["x", "k"]
    attributes: dict[str, Any] = {"alpha": slope} if slope else {}
    nodes = [
        helper.make_node("Sub", operands, ["d"], "less"),
        helper.make_node(op, ["d"], ["y"], "bend", **attributes),
    ]
    made = small_model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("k", [factor])])
    if opset is not None:
        made.opset_imports[""] = opset
    return made


def test_the_same_graph_read_twice_is_alike() -> None:
    assert parting(graph(), graph()) == []


def test_a_header_and_names_of_inner_values_change_nothing() -> None:
    model = graph()
    made = next(iter(model.graph)).outputs[0]
    made.name = "another"
    model.graph.doc_string = "said"
    assert parting(graph(), model) == []
    assert parting(model, normalise_header().rewrite(model).model) == []


def _another_input(model: ir.Model) -> None:
    model.graph.inputs[0].name = "z"


def _another_output(model: ir.Model) -> None:
    model.graph.outputs[0].name = "z"


def _another_shape(model: ir.Model) -> None:
    model.graph.inputs[0].shape = ir.Shape([1, 5])


def _output_that_is_given(model: ir.Model) -> None:
    output = model.graph.outputs[0]
    node = output.producer()
    assert node is not None
    node.outputs[0].name = "made"
    weight = model.graph.initializers.pop("k")
    weight.name = "y"
    model.graph.register_initializer(weight)
    model.graph.outputs[0] = weight


def _with_a_graph_inside(model: ir.Model) -> None:
    node = list(model.graph)[1]
    inner = ir.Graph([], [], nodes=[], name="inner")
    node.attributes["body"] = ir.AttrGraph("body", inner)


@pytest.mark.parametrize(
    ("other", "where"),
    [
        (graph(factor=2.5), "d"),
        (graph(swapped=True), "d"),
        (graph(slope=0.2), "y"),
        (graph(slope=0.0), "y"),
        (graph(op="Elu"), "y"),
    ],
    ids=["weight", "order of inputs", "attribute", "no attribute", "operator"],
)
def test_graphs_part_behind_what_differs(other: ir.Model, where: str) -> None:
    for one, two in ((graph(), other), (other, graph())):
        assert [(v.name, w.name) for v, w in parting(one, two) or ()] == [(where, where)]


def test_another_opset_parts_at_the_output() -> None:
    assert [(v.name, w.name) for v, w in parting(graph(), graph(opset=15)) or ()] == [("y", "y")]


def test_a_weight_of_another_type_parts_and_the_same_bytes_elsewhere_do_not() -> None:
    other, copied = graph(), graph()
    other.graph.initializers["k"].const_value = ir.tensor(np.array([2.0], np.float64), name="k")
    copied.graph.initializers["k"].const_value = ir.tensor(np.array([2.0], np.float32), name="k")
    assert parting(graph(), other)
    assert parting(graph(), copied) == []


def test_the_default_of_an_input_is_a_weight() -> None:
    one, other = graph(), graph(factor=2.5)
    for model in (one, other):
        model.graph.inputs.append(model.graph.initializers["k"])
    assert [v.name for v, _ in parting(one, other) or ()] == ["d"]


@pytest.mark.parametrize(
    "change", [_another_input, _another_output, _another_shape, _with_a_graph_inside, _output_that_is_given]
)
def test_nothing_is_said_of_another_interface_or_of_what_it_cannot_vouch_for(
    change: Callable[[ir.Model], None],
) -> None:
    other = graph()
    change(other)
    assert parting(graph(), other) is None


def test_nothing_is_said_of_a_graph_that_draws() -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], "draw", seed=1.0)
    model = small_model([node], [tensor("x", [1, 4])], [tensor("y", [1, 4])])
    assert draws(model)
    assert not draws(graph())
    assert parting(model, model.clone()) is None


def branching(early: str, late: str = "Neg") -> ir.Model:
    """y = Neg(early(x)) + late(x), z = late(x)."""
    nodes = [
        helper.make_node(early, ["x"], ["a"], "early"),
        helper.make_node("Neg", ["a"], ["b"], "minus"),
        helper.make_node(late, ["x"], ["z"], "late"),
        helper.make_node("Add", ["b", "z"], ["y"], "sum"),
    ]
    outputs = [tensor("y", [1, 4]), tensor("z", [1, 4])]
    return small_model(nodes, [tensor("x", [1, 4]), tensor("unread", [1])], outputs)


def test_each_place_that_differs_is_a_pair_and_what_is_behind_it_none() -> None:
    pairs = parting(branching("Sin", "Neg"), branching("Cos", "Abs"))
    assert {(v.name, w.name) for v, w in pairs or ()} == {("a", "a"), ("z", "z")}


def test_a_part_gives_what_the_whole_gives_there_and_has_no_more_nodes_than_that_takes() -> None:
    model = branching("Sin")
    made = {value.name: value for node in model.graph for value in node.outputs}
    part = part_up_to(model, [made["b"], made["a"]])
    assert [node.op_type for node in part.graph] == ["Sin", "Neg"]
    assert len(model.graph) == 4
    x = np.array([[1, 2, 3, 4]], np.float32)
    got = open_session(part)({"x": x, "unread": np.zeros(1, np.float32)})
    assert list(got) == ["b", "a"]
    np.testing.assert_allclose(got["a"], np.sin(x), rtol=1e-6)
    np.testing.assert_array_equal(got["b"], -got["a"])


def test_a_part_keeps_the_weights_that_it_reads_only() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["a"], "first"),
        helper.make_node("Mul", ["a", "l"], ["y"], "second"),
    ]
    weights = [constant("k", [2.0]), constant("l", [3.0])]
    model = small_model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], weights)
    part = part_up_to(model, [next(iter(model.graph)).outputs[0]])
    assert list(part.graph.initializers) == ["k"]
    assert list(model.graph.initializers) == ["k", "l"]
