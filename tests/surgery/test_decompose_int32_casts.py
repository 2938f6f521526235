"""Casts to int32 go by way of int64."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.decompose_int32_casts import decompose_int32_casts
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised

INT32, INT64, FLOAT, BOOL = TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


def cast(kind: int, target: int) -> ir.Model:
    """x to `target`, which is an output, and to float32 again."""
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], "there", to=target),
        helper.make_node("Cast", ["i"], ["y"], "back", to=FLOAT),
    ]
    return model(nodes, [tensor("x", [1, 6], kind)], [tensor("y", [1, 6]), tensor("i", [1, 6], target)])


@pytest.mark.parametrize("kind", [FLOAT, BOOL])
def test_decompose_int32_casts_computes_the_same_when_the_toolkit_cannot_convert(kind: int) -> None:
    original = cast(kind, INT32)
    before = serialised(original)
    done = decompose_int32_casts().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    assert [node.attributes["to"].as_int() for node in done.model.graph] == [INT64, INT32, FLOAT]
    x = np.array([[-2.9, -0.5, 0, 0.99, 3, 60000]]).astype(helper.tensor_dtype_to_np_dtype(kind))
    wanted, made = run(original, {"x": x}), run(done.model, {"x": x})
    assert made["i"].dtype == np.int32
    assert all(np.array_equal(wanted[name], made[name]) for name in wanted)


@pytest.mark.parametrize(
    ("kind", "target"), [(FLOAT, INT64), (INT64, INT32), (INT32, INT32), (INT32, INT64), (BOOL, INT64), (BOOL, FLOAT)]
)
def test_decompose_int32_casts_returns_the_model_itself_when_the_toolkit_converts(kind: int, target: int) -> None:
    made = cast(kind, target)
    done = decompose_int32_casts().rewrite(made)
    assert done.model is made
    assert (done.hits, done.refused) == (0, ())


def test_decompose_int32_casts_finds_the_type_when_the_graph_does_not_state_it() -> None:
    nodes = [
        helper.make_node("Greater", ["x", "x"], ["b"], "above"),
        helper.make_node("Cast", ["b"], ["y"], "there", to=INT32),
    ]
    made = model(nodes, [tensor("x", [1, 6])], [tensor("y", [1, 6], INT32)])
    assert decompose_int32_casts().rewrite(made).hits == 1
