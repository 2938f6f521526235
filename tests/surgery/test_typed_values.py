"""What of a graph is of some types, and what varies."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.typed_values import (
    constants_of,
    data_type,
    inner_inputs,
    is_fed,
    stated_types,
    varying_nodes,
)
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node

HALF, DOUBLE = ir.DataType.FLOAT16, ir.DataType.DOUBLE


def looped() -> ir.Model:
    """A Loop whose body carries a double, and adds a weight of halves that is cast."""
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Cast", "h", "w", to=TensorProto.DOUBLE), node("Add", "carried w", "out")],
        "body",
        [
            tensor("i", [], TensorProto.INT64),
            tensor("go", [], TensorProto.BOOL),
            tensor("carried", [2], TensorProto.DOUBLE),
        ],
        [tensor("on", [], TensorProto.BOOL), tensor("out", [2], TensorProto.DOUBLE)],
    )
    nodes = [
        node("Cast", "x", "wide", to=TensorProto.DOUBLE),
        node("Loop", "count - wide", "last", body=body),
        node("Cast", "last", "y", to=TensorProto.FLOAT),
    ]
    weights = [constant("h", [1, 2], np.float16), constant("count", 3, np.int64)]
    return model(nodes, [tensor("x", [2])], [tensor("y", [2])], weights)


def test_stated_types_are_those_of_inputs_weights_attributes_and_nested_graphs() -> None:
    made = looped()
    inside = made.graph[1].attributes["body"].as_graph()
    inside[0].attributes["value"] = ir.AttrTensor("value", ir.tensor(np.zeros(1, np.int8)))
    assert set(stated_types(made)) == {
        ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL, HALF, DOUBLE, ir.DataType.INT8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("number", "wanted"),
    [(1, ir.DataType.FLOAT), (11, DOUBLE), (0, ir.DataType.UNDEFINED), (999, ir.DataType.UNDEFINED)],
)
def test_data_type_is_undefined_when_onnx_has_no_such_number(number: int, wanted: ir.DataType) -> None:
    assert data_type(number) is wanted


def test_is_fed_when_no_weight_stands_behind_the_input() -> None:
    inputs = [tensor("x", [2]), tensor("w", [2])]
    made = model([node("Add", "x w", "y")], inputs, [tensor("y", [2])], [constant("w", [1, 2])])
    assert [is_fed(value, made.graph) for value in made.graph.inputs] == [True, False]
    assert [one.name for one in varying_nodes(made)] == ["n_y"]


def test_inner_inputs_are_the_loops_that_are_of_the_types() -> None:
    made = looped()
    assert [value.name for value in inner_inputs(made.graph, {DOUBLE})] == ["carried"]
    assert inner_inputs(made.graph, {HALF}) == []


def test_varying_nodes_depend_on_an_input_or_on_chance_and_not_on_a_shape() -> None:
    nodes = [
        node("Shape", "x", "size"),
        node("Cast", "size", "sizes", to=TensorProto.FLOAT),
        node("RandomNormal", "", "drawn", shape=[2]),
        node("Add", "x drawn", "a"),
        node("Mul", "a sizes", "b"),
        node("Neg", "k", "n"),
        node("Add", "b n", "y"),
    ]
    made = model(nodes, [tensor("x", [2])], [tensor("y", [2])], [constant("k", [1, 2])])
    assert [one.name for one in varying_nodes(made)] == ["n_drawn", "n_a", "n_b", "n_y"]


def test_constants_of_are_what_varying_nodes_read_of_the_types() -> None:
    nodes = [
        node("Neg", "k", "n"),
        node("Cast", "x", "w", to=TensorProto.DOUBLE),
        node("Mul", "w n", "m"),
        node("Add", "m d", "a"),
        node("Add", "a d", "s"),
        node("Cast", "s", "y", to=TensorProto.FLOAT),
    ]
    weights = [constant("k", [1, 2], np.float64), constant("d", [3, 4], np.float64)]
    made = model(nodes, [tensor("x", [2])], [tensor("y", [2])], weights)
    made.graph[0].outputs[0].type = ir.TensorType(DOUBLE)
    varying = varying_nodes(made)
    assert [value.name for value in constants_of(varying, {DOUBLE})] == ["n", "d"]
    assert constants_of(varying, {HALF}) == []
