from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from contracts.errors import UserInput
from rknn_tts.feeds import stand_in_feed
from tests.gates.small_graphs import constant, model, tensor


def test_stand_in_feed_is_normal_of_the_inputs_shapes_and_types_and_the_same_each_time() -> None:
    nodes = [helper.make_node("Cast", ["h"], ["c"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "c"], ["y"])]
    inputs = [tensor("x", [1, 64, 64]), tensor("h", [1], TensorProto.FLOAT16)]
    graph = model(nodes, inputs, [tensor("y", [1, 64, 64])])
    feed = stand_in_feed(graph, "m.onnx")
    assert {name: (array.shape, array.dtype.name) for name, array in feed.items()} == {
        "x": ((1, 64, 64), "float32"),
        "h": ((1,), "float16"),
    }
    assert abs(feed["x"].mean()) < 0.1
    assert abs(feed["x"].std() - 1) < 0.1
    for name, array in stand_in_feed(graph, "m.onnx").items():
        np.testing.assert_array_equal(array, feed[name])


def test_stand_in_feed_leaves_out_weights_that_are_listed_as_inputs() -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    graph = model(nodes, [tensor("x", [1, 4]), tensor("w", [4])], [tensor("y", [1, 4])], [constant("w", [1.0] * 4)])
    assert list(stand_in_feed(graph, "m.onnx")) == ["x"]


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL])
def test_stand_in_feed_names_an_input_of_another_type(dtype: int) -> None:
    nodes = [helper.make_node("Cast", ["ids"], ["y"], to=TensorProto.FLOAT)]
    graph = model(nodes, [tensor("ids", [1, 4], dtype)], [tensor("y", [1, 4])])
    with pytest.raises(UserInput, match=r"^m\.onnx: the input ids is of type "):
        stand_in_feed(graph, "m.onnx")
