"""Types and shapes of one node's outputs, against ONNX's specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.node_types import (
    MOST_SIZES,
    is_constant,
    output_types,
    stated_type,
    static_sizes,
    tensor_type,
    type_of,
)
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node
from tests.surgery.one_operator import operator

SIZES = np.array([4, -1])


def types(made: ir.Model) -> dict[ir.Value, onnx.TypeProto]:
    return {value: kind for value in made.graph.inputs if (kind := stated_type(value)) is not None}


def inferred(made: ir.Model, opset: int = 17) -> list[tuple[int, tuple[int, ...] | None]]:
    """Element type and sizes of each output of the first node that has a type."""
    found = output_types(made.graph[0], types(made), opset)
    return [(kind.tensor_type.elem_type, static_sizes(kind)) for kind in found.values()]


@pytest.mark.parametrize(
    ("original", "wanted"),
    [
        (operator("Transpose", shape=(2, 3, 4)), [(TensorProto.FLOAT, (4, 3, 2))]),
        (operator("Reshape", "x to", shape=(2, 6), constants={"to": SIZES}), [(TensorProto.FLOAT, (4, 3))]),
        (operator("Shape", shape=(2, 6), made={"y": (1, TensorProto.INT64)}), [(TensorProto.INT64, (2,))]),
        (operator("Split", outputs="a b", shape=(2, 6), axis=1), [(TensorProto.FLOAT, (2, 3))] * 2),
        (operator("Relu", shape=("n", 3)), [(TensorProto.FLOAT, None)]),
    ],
    ids=["transposed", "by a constant", "whole numbers", "two outputs", "open"],
)
def test_output_types_are_onnxs_when_the_inputs_are_known(original: ir.Model, wanted: list[Any]) -> None:
    assert inferred(original) == wanted


def test_output_types_do_not_trust_what_the_file_says_of_the_output() -> None:
    made = operator("Neg", shape=(2, 3))
    made.graph[0].outputs[0].shape = ir.Shape([7])
    assert inferred(made) == [(TensorProto.FLOAT, (2, 3))]


def test_output_types_say_nothing_when_an_input_has_none_or_the_node_is_not_valid() -> None:
    made = model([node("Add", "x u", "y")], [tensor("x", [2]), tensor("u", [2])], [tensor("y", [2])])
    assert output_types(made.graph[0], {made.graph.inputs[0]: types(made)[made.graph.inputs[0]]}, 17) == {}
    assert inferred(operator("NoSuchOperator")) == []
    assert inferred(operator("Concat")) == []  # it lacks its axis


def test_output_types_are_what_the_file_says_when_the_operator_is_not_onnxs() -> None:
    made = operator("Anything", shape=(2, 3))
    made.graph[0].domain = "com.microsoft"
    assert inferred(made) == [(TensorProto.FLOAT, None)]


def test_output_types_read_no_constant_longer_than_sizes_are() -> None:
    long = np.ones(MOST_SIZES + 1, np.int64)
    assert inferred(operator("Expand", "x to", shape=(1,), constants={"to": long})) == [(TensorProto.FLOAT, None)]
    assert inferred(operator("Expand", "x to", shape=(1,), constants={"to": long[:3]})) == [
        (TensorProto.FLOAT, (1, 1, 1))
    ]


def test_type_of_is_a_constants_own_and_what_is_known_of_others() -> None:
    made = model([node("Add", "x w", "y")], [tensor("x", [2, 3])], [tensor("y", [2, 3])], [constant("w", [[1, 2, 3]])])
    x, w = made.graph[0].inputs
    assert x is not None
    assert w is not None
    known: Mapping[ir.Value, onnx.TypeProto] = types(made)
    assert static_sizes(type_of(w, {})) == (1, 3)
    assert type_of(w, {}) == tensor_type(w)
    assert static_sizes(type_of(x, known)) == (2, 3)
    assert type_of(x, {}) is None
    assert (is_constant(w), is_constant(x), is_constant(None)) == (True, False, False)


def test_is_constant_is_false_when_a_caller_can_replace_the_weight() -> None:
    given = [tensor("x", [2]), tensor("w", [2])]
    made = model([node("Add", "x w", "y")], given, [tensor("y", [2])], [constant("w", [1, 2])])
    assert not is_constant(made.graph[0].inputs[1])


def test_stated_type_is_none_when_the_file_says_no_type() -> None:
    assert stated_type(ir.Value(name="v", shape=ir.Shape([2]))) is None
    bare = stated_type(ir.Value(name="v", type=ir.TensorType(ir.DataType.INT64)))
    assert bare == helper.make_tensor_type_proto(TensorProto.INT64, None)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (helper.make_tensor_type_proto(1, [2, 3]), (2, 3)),
        (helper.make_tensor_type_proto(1, []), ()),
        (helper.make_tensor_type_proto(1, [2, "n"]), None),
        (helper.make_tensor_type_proto(1, [2, -1]), None),
        (helper.make_tensor_type_proto(1, None), None),
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])), None),
        (None, None),
    ],
)
def test_static_sizes_are_known_when_every_one_is_a_number(
    kind: onnx.TypeProto | None, wanted: tuple[int, ...] | None
) -> None:
    assert static_sizes(kind) == wanted
