from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.alike import alike, draws
from surgery.normalise_header import normalise_header
from tests.gates.small_graphs import constant, tensor
from tests.gates.small_graphs import model as small_model


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
    assert alike(graph(), graph())


def test_a_header_and_names_of_inner_values_change_nothing() -> None:
    model = graph()
    made = next(iter(model.graph)).outputs[0]
    made.name = "another"
    model.graph.doc_string = "said"
    assert alike(graph(), model)
    assert alike(model, normalise_header().rewrite(model).model)


def _another_input(model: ir.Model) -> None:
    model.graph.inputs[0].name = "z"


def _another_output(model: ir.Model) -> None:
    model.graph.outputs[0].name = "z"


def _another_shape(model: ir.Model) -> None:
    model.graph.inputs[0].shape = ir.Shape([1, 5])


def _early_output(model: ir.Model) -> None:
    first, last = list(model.graph)
    last.outputs[0].name, first.outputs[0].name = "d", "y"
    model.graph.outputs[0] = first.outputs[0]


def _with_a_graph_inside(model: ir.Model) -> None:
    node = list(model.graph)[1]
    inner = ir.Graph([], [], nodes=[], name="inner")
    node.attributes["body"] = ir.AttrGraph("body", inner)


@pytest.mark.parametrize(
    "other",
    [
        graph(factor=2.5),
        graph(slope=0.2),
        graph(slope=0.0),
        graph(op="Elu"),
        graph(opset=15),
        graph(swapped=True),
    ],
    ids=["weight", "attribute", "no attribute", "operator", "opset", "order of inputs"],
)
def test_another_computation_is_not_alike(other: ir.Model) -> None:
    assert not alike(graph(), other)
    assert not alike(other, graph())


@pytest.mark.parametrize(
    "change", [_another_input, _another_output, _another_shape, _early_output, _with_a_graph_inside]
)
def test_another_interface_or_what_it_cannot_vouch_for_is_not_alike(change: Callable[[ir.Model], None]) -> None:
    other = graph()
    change(other)
    assert not alike(graph(), other)


def test_a_weight_of_other_bytes_and_like_numbers_is_not_alike() -> None:
    other = graph()
    other.graph.initializers["k"].const_value = ir.tensor(np.array([2.0], np.float64), name="k")
    assert not alike(graph(), other)


def test_a_graph_that_draws_is_like_none() -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], "draw", seed=1.0)
    model = small_model([node], [tensor("x", [1, 4])], [tensor("y", [1, 4])])
    assert draws(model)
    assert not draws(graph())
    assert not alike(model, model.clone())
