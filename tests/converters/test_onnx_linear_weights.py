"""Weights of a model that torch exported, found in its graph, which is written here by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from contracts.errors import Refusal
from converters.onnx_linear_weights import Exported

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)  # [O, I]
BIAS = np.array([7, 8], np.float32)
CONV = np.arange(4, dtype=np.float32).reshape(2, 2, 1)


def exported(product: str = "MatMul", kind: type = np.float32) -> Exported:
    """A linear layer with its weight turned, and a convolution behind it, whose weight has its name."""
    tensors: dict[str, NDArray[np.generic]] = {
        "onnx::MatMul_17": WEIGHT.T.astype(kind),
        "wide.bias": BIAS.astype(kind),
        "conv.weight": CONV.astype(kind),
        "conv.turns": np.zeros(3, kind),
    }
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node(product, ["x", "onnx::MatMul_17"], ["made"]),
        helper.make_node("Add", ["wide.bias", "made"], ["sum"]),
        helper.make_node("Conv", ["sum", "conv.weight"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", element, [2, 2, 3])],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    return Exported(model, Path("model.onnx"), "a layer", "give another")


def test_linear_weight_is_turned_back_and_others_are_as_they_are() -> None:
    found = exported().weights()
    assert found.keys() == {"wide.weight", "wide.bias", "conv.weight"}
    np.testing.assert_array_equal(found["wide.weight"], WEIGHT)
    np.testing.assert_array_equal(found["wide.bias"], BIAS)
    np.testing.assert_array_equal(found["conv.weight"], CONV)


def test_other_names_are_read_by_their_endings() -> None:
    assert "conv.turns" in exported().weights((".turns",))


def test_weight_that_is_not_found_is_named() -> None:
    with pytest.raises(Refusal) as raised:
        exported(product="Mul").weights()
    said = (
        "model.onnx: is not a layer as torch's exporter writes it: no MatMul stands in front of the sum with wide.bias"
    )
    assert said in str(raised.value)
    assert "so wide.weight is not found" in str(raised.value)


def test_weight_of_another_type_is_refused() -> None:
    with pytest.raises(Refusal, match="is float16, float32 is needed; give another"):
        exported(kind=np.float16).weights()


def test_other_ends_are_refused() -> None:
    exported().check_ends(("x",), "y")
    with pytest.raises(Refusal, match="it takes x and gives y, and that takes x, t and gives y; give another"):
        exported().check_ends(("x", "t"), "y")
