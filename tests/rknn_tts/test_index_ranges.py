"""Which integers an input may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from rknn_tts.index_ranges import index_sizes
from tests.gates.small_graphs import constant, model, tensor

TABLES = [constant("table", np.zeros((50, 4))), constant("small", np.zeros((7, 4))), constant("deep", [3], np.int64)]


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"n_{output}", **attributes)


def read_by(*nodes: onnx.NodeProto) -> ir.Model:
    """The input i [1, 6] and what is made of it."""
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
    return model(nodes, [tensor("i", [1, 6], TensorProto.INT64)], outputs, TABLES)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (read_by(node("Gather", "table i", "y")), {"i": 50}),
        (read_by(node("Gather", "table i", "y", axis=1)), {"i": 4}),
        (read_by(node("Gather", "table i", "a"), node("Gather", "small i", "b"), node("Add", "a b", "y")), {"i": 7}),
        (read_by(node("Cast", "i", "j", to=TensorProto.INT32), node("Gather", "table j", "y")), {"i": 50}),
        (read_by(node("OneHot", "i deep small", "y")), {"i": 3}),
        (read_by(node("Gather", "i deep", "y")), {}),
        (read_by(node("Cast", "i", "y", to=TensorProto.FLOAT)), {}),
        (read_by(node("Add", "i i", "j"), node("Gather", "table j", "y")), {}),
    ],
    ids=["table", "its other axis", "smallest of two", "cast on the way", "OneHot", "data", "a number", "computed"],
)
def test_index_sizes_gives_the_axis_that_an_input_indexes(made: ir.Model, wanted: dict[str, int]) -> None:
    assert index_sizes(made) == wanted
