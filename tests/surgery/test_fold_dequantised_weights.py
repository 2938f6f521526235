"""Quantised weights become floats, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.fold_dequantised_weights import fold_dequantised_weights
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.surgery.quantised_graphs import noise

RNG = np.random.default_rng(2)
FEED = {"x": noise(2, 6)}


def integers(dtype: Any, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def weighted(weight: Any, scale: Any, zero: Any = None, opset: int = 17, **attributes: Any) -> ir.Model:
    """x @ DequantizeLinear(weight)."""
    read = ["q", "s"] if zero is None else ["q", "s", "z"]
    nodes = [
        helper.make_node("DequantizeLinear", read, ["w"], "floats", **attributes),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    constants = [constant("q", weight, weight.dtype), constant("s", scale)]
    constants += [] if zero is None else [constant("z", zero, weight.dtype)]
    return model(nodes, [tensor("x", [2, 6])], [tensor("y", [2, 5])], constants, opset=opset)


CASES = [
    pytest.param((integers(np.int8, 6, 5), 0.1), {}, id="no zero point"),
    pytest.param((integers(np.int8, 6, 5), 0.1, -3), {}, id="int8"),
    pytest.param((integers(np.uint8, 6, 5), 0.1, 131), {"opset": 10}, id="uint8, opset 10"),
    pytest.param((integers(np.uint8, 6, 5), [0.1], [131]), {"opset": 12}, id="one in a list"),
    pytest.param((integers(np.int32, 6, 5), 1e-9), {}, id="int32"),
    pytest.param((integers(np.int8, 6, 5), np.abs(noise(5)), integers(np.int8, 5)), {"axis": 1}, id="columns"),
    pytest.param((integers(np.int8, 6, 5), np.abs(noise(5)), integers(np.int8, 5)), {}, id="columns, by default"),
    pytest.param((integers(np.int8, 6, 5), np.abs(noise(5))), {"axis": -1}, id="axis -1"),
    pytest.param((integers(np.uint8, 6, 5), np.abs(noise(6)), integers(np.uint8, 6)), {"axis": 0}, id="rows"),
    pytest.param((integers(np.int8, 6, 5), np.abs(noise(6))), {"axis": -2, "opset": 13}, id="axis -2"),
    pytest.param((integers(np.int8, 6, 5), np.abs(noise(2, 5)).clip(0.1), integers(np.int8, 2, 5)),
                 {"axis": 0, "block_size": 3, "opset": 21}, id="blocks, opset 21"),
    pytest.param((integers(np.int16, 6, 5), 1e-3, 7), {"opset": 21}, id="int16, opset 21"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "options"), CASES)
def test_dequantised_weights_are_the_same_to_the_bit_when_folded(arguments: Any, options: dict[str, Any]) -> None:
    original = weighted(*arguments, **options)
    before = serialised(original)
    done = fold_dequantised_weights().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    assert [node.op_type for node in done.model.graph] == ["MatMul"]
    assert [value.dtype for value in done.model.graph.initializers.values()] == [ir.DataType.FLOAT]
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])


def embedding(scale: Any = 0.1) -> ir.Model:
    """Rows of a table, transposed, as floats; the table is read as a factor too."""
    nodes = [
        helper.make_node("Gather", ["q", "ids"], ["g"], "gather", axis=0),
        helper.make_node("Transpose", ["g"], ["t"], "turn", perm=[0, 2, 1]),
        helper.make_node("DequantizeLinear", ["t", "s", "z"], ["y"], "floats"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], "tied"),
        helper.make_node("MatMul", ["x", "w"], ["z0"], "product"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w2"], "tied again"),
        helper.make_node("MatMul", ["z0", "w2"], ["v"], "product again"),
    ]
    constants = [constant("q", integers(np.uint8, 6, 6), np.uint8), constant("s", scale)]
    constants.append(constant("z", np.full(np.shape(scale), 128), np.uint8))
    inputs = [tensor("ids", [1, 3], TensorProto.INT64), tensor("x", [2, 6])]
    return model(nodes, inputs, [tensor("y", [1, 6, 3]), tensor("v", [2, 6])], constants)


def test_dequantised_weights_are_made_once_when_rows_are_chosen_and_several_nodes_read_them() -> None:
    original = embedding()
    done = fold_dequantised_weights().rewrite(original)
    assert done.hits == 3
    check(done.model)
    assert len(done.model.graph.initializers) == 1
    feed = {"ids": np.array([[5, 0, 2]]), **FEED}
    wanted, got = run(original, feed), run(done.model, feed)
    for name in ("y", "v"):
        np.testing.assert_array_equal(got[name], wanted[name])


def test_dequantised_weights_are_left_when_rows_are_chosen_and_have_scales_of_their_own() -> None:
    original = weighted(integers(np.int8, 6, 5), np.abs(noise(5)), opset=13)
    choice = ir.node("Identity", [original.graph.initializers["q"]], name="choice")
    original.graph.insert_before(original.graph[0], choice)
    original.graph[1].replace_input_with(0, choice.outputs[0])
    assert fold_dequantised_weights().rewrite(original).model is original


def test_dequantised_weights_keep_the_output_when_it_is_one() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["y"], "floats")]
    made = model(nodes, [], [tensor("y", [4])], [constant("q", [1, 2, 3, -4], np.int8), constant("s", 0.5)])
    done = fold_dequantised_weights().rewrite(made)
    assert done.hits == 1
    check(done.model)
    np.testing.assert_array_equal(run(done.model, {})["y"], np.array([0.5, 1, 1.5, -2], np.float32))


def test_dequantised_weights_take_half_precision_when_the_scale_has_it() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["y"], "floats")]
    constants = [constant("q", integers(np.int8, 4), np.int8), constant("s", 0.1, np.float16)]
    made = model(nodes, [], [tensor("y", [4], TensorProto.FLOAT16)], constants, opset=19)
    done = fold_dequantised_weights().rewrite(made)
    check(done.model)
    np.testing.assert_array_equal(run(done.model, {})["y"], run(made, {})["y"])


@pytest.mark.parametrize("name", ["q", "s"])
def test_dequantised_weights_are_left_when_they_are_inputs(name: str) -> None:
    original = weighted(integers(np.int8, 6, 5), 0.1)
    original.graph.inputs.append(original.graph.initializers[name])
    assert fold_dequantised_weights().rewrite(original).model is original


@pytest.mark.parametrize(("scales", "axis"), [(4, 1), (5, 0), (5, 2)])
def test_dequantised_weights_are_left_when_their_scales_do_not_fit(scales: int, axis: int) -> None:
    original = weighted(integers(np.int8, 6, 5), np.ones(scales), axis=axis)
    assert fold_dequantised_weights().rewrite(original).model is original
