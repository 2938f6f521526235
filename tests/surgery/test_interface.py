"""What the passes over a graph's inputs and outputs share."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.interface import LARGEST_TENSOR, fresh_name, insert_behind, is_reasonable, numpy_dtype, put_before_output
from tests.gates.small_graphs import chain, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((), True), ((1, LARGEST_TENSOR), True), ((2, LARGEST_TENSOR), False), ((4, 0), False), ((-1, 2), False)],
)
def test_is_reasonable_holds_something_and_not_too_much(shape: tuple[int, ...], wanted: bool) -> None:
    assert is_reasonable(shape) is wanted


def test_numpy_dtype_is_float32_when_the_graph_does_not_say() -> None:
    assert numpy_dtype(ir.Value(name="x")) == "float32"
    assert numpy_dtype(ir.Value(name="x", type=ir.TensorType(ir.DataType.INT64))) == "int64"


@pytest.mark.parametrize("name", ["x", "t0", "y", "inner", "k"])
def test_fresh_name_keeps_clear_of_inputs_tensors_outputs_nested_ones_and_weights(name: str) -> None:
    inside = [helper.make_node("Relu", ["x"], ["inner"], "n")]
    branches = {
        f"{which}_branch": helper.make_graph(inside, which, [], [tensor("inner", [1, 4])]) for which in ("then", "else")
    }
    nodes = [
        helper.make_node("Neg", ["x"], ["t0"], "a"),
        helper.make_node("If", ["c"], ["t1"], "b", **branches),
        helper.make_node("Sum", ["t0", "t1", "k"], ["y"], "c"),
    ]
    made = model(nodes, [tensor("x", [1, 4]), tensor("c", [1], 9)], [tensor("y", [1, 4])], [tensor_of_ones()])
    assert fresh_name(made.graph, name) == f"{name}_"
    assert fresh_name(made.graph, "free") == "free"


def tensor_of_ones() -> object:
    return helper.make_tensor("k", 1, [4], np.ones(4, np.float32))


def test_put_before_output_keeps_the_name_and_what_others_read() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"], "neg"), helper.make_node("Abs", ["y"], ["z"], "abs")]
    made = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4]), tensor("z", [1, 4])])
    output = put_before_output(made.graph, made.graph.outputs[0], ir.node("Sqrt", [None], name="root"), "aside")
    output.shape = ir.Shape([1, 4])
    check(made)
    assert [value.name for value in made.graph.outputs] == ["y", "z"]
    got = run(made, {"x": np.array([[-4, -9, -16, -1]], np.float32)})
    np.testing.assert_array_equal(got["y"], [[2, 3, 4, 1]])
    np.testing.assert_array_equal(got["z"], [[4, 9, 16, 1]])


def test_insert_behind_puts_a_node_first_when_an_input_is_read() -> None:
    made = chain("Relu", "Neg")
    read, made_first = made.graph.inputs[0], made.graph[0].outputs[0]
    insert_behind(made.graph, ir.node("Abs", [read], name="a"), read)
    insert_behind(made.graph, ir.node("Abs", [made_first], name="b"), made_first)
    assert [node.name for node in made.graph] == ["a", "n0", "b", "n1"]


def test_put_before_output_takes_an_identity_out_when_it_gave_the_output_its_name() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Identity", ["t"], ["y"])]
    made = model(
        [*nodes, helper.make_node("Abs", ["y"], ["z"])],
        [tensor("x", [1, 2])],
        [tensor("y", [1, 2]), tensor("z", [1, 2])],
    )
    output = put_before_output(made.graph, made.graph.outputs[0], ir.node("Sqrt", [None], name="root"), "aside")
    output.shape = ir.Shape([1, 2])
    check(made)
    assert sorted(node.op_type for node in made.graph) == ["Abs", "Neg", "Sqrt"]
    got = run(made, {"x": np.array([[-4, -9]], np.float32)})
    np.testing.assert_array_equal(got["y"], [[2, 3]])
    np.testing.assert_array_equal(got["z"], [[4, 9]])
