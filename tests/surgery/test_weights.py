"""Constants that no caller can change."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.weights import tensor_of, weight_of


def initializer(listed: bool = False) -> ir.Value:
    value = ir.Value(name="w", const_value=ir.tensor(np.array([1.5], np.float32)))
    ir.Graph([value] if listed else [], [], nodes=[], initializers=[value])
    return value


def made_by(op: str = "Constant", domain: str = "", **attributes: Any) -> ir.Value:
    return ir.node(op, [], attributes, domain=domain).outputs[0]


def test_weight_is_read_when_it_is_an_initializer() -> None:
    np.testing.assert_array_equal(weight_of(initializer()), [1.5])


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({"value": ir.tensor(np.array([[1], [2]], np.int8))}, np.array([[1], [2]], np.int8)),
        ({"value_float": 0.5}, np.float32(0.5)),
        ({"value_floats": [0.5, 2.0]}, np.array([0.5, 2], np.float32)),
        ({"value_int": 3}, np.int64(3)),
        ({"value_ints": [3, 4]}, np.array([3, 4], np.int64)),
    ],
)
def test_weight_is_read_when_a_constant_node_states_it(attributes: dict[str, Any], wanted: Any) -> None:
    got = weight_of(made_by(**attributes))
    assert got is not None
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "value",
    [
        None,
        initializer(listed=True),
        ir.Value(name="x"),
        made_by("Relu"),
        made_by(domain="com.microsoft", value_int=3),
        made_by(sparse_value=ir.tensor(np.zeros(2))),
    ],
    ids=["left out", "default of an input", "input", "computed", "another's Constant", "sparse"],
)
def test_there_is_no_weight_when_a_caller_or_the_data_decides(value: ir.Value | None) -> None:
    assert tensor_of(value) is None
    assert weight_of(value) is None
