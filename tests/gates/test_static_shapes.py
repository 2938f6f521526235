"""The form that the toolkit takes: each departure from it fails and is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal
from contracts.verdicts import Status, Verdict
from gates.fp16_range import activation_range
from gates.graphs import NO_SHAPES, with_shapes
from gates.static_shapes import static_shapes
from tests.gates.small_graphs import chain, constant, model, row, tensor


def judged(made: ir.Model) -> Verdict:
    try:
        shaped = with_shapes(made)
    except Refusal:
        shaped = None
    return static_shapes(made, shaped)


X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])


def add(*inputs: Any) -> ir.Model:
    return model([helper.make_node("Add", ["x", "s"], ["y"], "add")], [X, *inputs], [Y])


def test_static_shapes_passes_when_shapes_can_be_inferred() -> None:
    verdict = judged(chain("Tanh", "Relu", "Sin"))
    assert (verdict.status, verdict.measured) == (Status.PASSED, 0.0)
    assert verdict.detail == "opset 17, IR 8, every tensor of a fixed shape"


@pytest.mark.parametrize("opset", [9, 13, 19])
def test_static_shapes_passes_when_opset_is_at_most_19(opset: int) -> None:
    assert judged(chain("Tanh", opset=opset)).status is Status.PASSED


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (chain("Tanh", opset=20), "opset 20 is past 19"),
        (chain("Tanh", ir_version=11), "IR version 11 is past 10"),
        (add(tensor("s", [])), "input 's' has rank 0"),
        (chain("Tanh", shape=("N", 4)), "input 'x' has the shape [N, 4], which is not fixed: give it fixed sizes"),
        (chain("Tanh", "Relu", shape=(1, "T")), "tensor 't0' of Tanh, node 'n0', has the shape [1, T]"),
        (chain("Tanh", shape=(1, 0)), "input 'x' has the shape [1, 0], which holds no values"),
        (chain("Tanh", "Relu", shape=(3, 2**30)), "tensor 't0' of Tanh, node 'n0', has the shape [3, 1073741824], 6.4"),
        (chain("Blorp", "Tanh"), "tensor 't0' of Blorp, node 'n0', has no known shape"),
    ],
)
def test_static_shapes_fails_with_reason_when_form_is_wrong(made: ir.Model, says: str) -> None:
    verdict = judged(made)
    assert verdict.status is Status.FAILED
    assert says in verdict.detail


def test_static_shapes_fails_when_an_input_has_no_shape() -> None:
    made = chain("Tanh")
    made.graph.inputs[0].shape = None
    made.graph.outputs[0].shape = None
    verdict = judged(made)
    assert "input 'x' has no known shape" in verdict.detail
    assert "output 'y' of Tanh, node 'n0', has no known shape" in verdict.detail


@pytest.mark.parametrize(
    ("kind", "name", "status"),
    [
        ("input", "x" * 127, Status.PASSED),
        ("input", "\u540d" * 127, Status.PASSED),
        ("input", "x" * 128, Status.FAILED),
        ("output", "y" * 127, Status.PASSED),
        ("output", "y" * 2000, Status.FAILED),
        ("tensor", "t" * 2000, Status.PASSED),
    ],
)
def test_static_shapes_judges_the_names_of_inputs_and_outputs_by_their_length(
    kind: str, name: str, status: Status
) -> None:
    made = chain("Tanh", "Relu")
    values = {"input": made.graph.inputs[0], "output": made.graph.outputs[0], "tensor": made.graph[0].outputs[0]}
    values[kind].name = name
    verdict = judged(made)
    assert verdict.status is status
    if status is Status.FAILED:
        assert f"the {kind} '{name[:40]}...' has a name of {len(name)} characters, and the toolkit takes 127: re" in (
            verdict.detail
        )


def misstated() -> ir.Model:
    made = chain("Tanh", "Relu")
    made.graph[0].outputs[0].type = ir.TensorType(ir.DataType.INT64)
    return made


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (misstated(), "tensor 't0' of Tanh, node 'n0', has no known shape (Inferred elem type differs from existing"),
        (misstated(), "elem type: float vs int64)"),
        (
            model(
                [helper.make_node("MatMul", ["x", "s"], ["y"], "times")],
                [X],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                [constant("s", np.ones((700, 5)))],
            ),
            "'y' of MatMul, node 'times', has no known shape (Incompatible dimensions",
        ),
        (
            model(
                [helper.make_node("Conv", ["x", "s"], ["y"], "conv")],
                [tensor("x", [1, 1, 4, 4])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                [constant("s", np.ones((1, 1, 3)))],
            ),
            "weight tensor (1) does not match the number of spatial dimensions in the input tensor (2))",
        ),
    ],
)
def test_static_shapes_says_why_there_is_no_shape_when_a_node_does_not_fit(made: ir.Model, says: str) -> None:
    assert says in judged(made).detail


def test_static_shapes_fails_when_a_shape_depends_on_data() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["i"], "find"), helper.make_node("Tanh", ["x"], ["y"], "t")]
    verdict = judged(model(nodes, [X], [Y]))
    assert "tensor 'i' of NonZero, node 'find'" in verdict.detail


def test_static_shapes_follows_constants_when_they_give_a_shape() -> None:
    nodes = [helper.make_node("Reshape", ["x", "to"], ["r"], "r"), helper.make_node("Tanh", ["r"], ["y"], "t")]
    made = model(nodes, [X], [tensor("y", [2, 2])], [constant("to", [2, -1], "int64")])
    assert judged(made).status is Status.PASSED


def test_static_shapes_fails_when_two_nodes_share_a_name() -> None:
    nodes = [helper.make_node("Tanh", ["x"], ["t"], "same"), helper.make_node("Relu", ["t"], ["y"], "same")]
    assert "the node name 'same' is used 2 times" in judged(model(nodes, [X], [Y])).detail


def test_static_shapes_passes_when_nodes_have_no_name() -> None:
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    assert judged(model(nodes, [X], [Y])).status is Status.PASSED


def test_static_shapes_fails_when_two_tensors_share_a_name() -> None:
    made = chain("Tanh", "Relu")
    made.graph[0].outputs[0].name = "x"
    assert "the tensor name 'x' is used 2 times" in judged(made).detail


RELU = helper.make_node("Relu", ["t"], ["y"], "b")
UNMADE = "Relu, node 'b', uses 't', which nothing before it makes"


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (
            [RELU, helper.make_node("Tanh", ["x"], ["t"], "a")],
            "Relu, node 'b', uses 't', which nothing before it makes",
        ),
        ([RELU], UNMADE),
        ([helper.make_node("Relu", ["x"], ["z"], "a")], "output 'y' is made by no node"),
    ],
)
def test_static_shapes_fails_naming_the_tensor_when_nothing_makes_it(nodes: list[onnx.NodeProto], says: str) -> None:
    verdict = judged(model(nodes, [X], [Y]))
    assert (verdict.status, verdict.measured) == (Status.FAILED, 1.0)
    assert verdict.detail == says


def test_activation_range_fails_with_a_sentence_when_graph_is_broken() -> None:
    verdict = activation_range(model([RELU], [X], [Y]), [{"x": row(1, 2, 3, 4)}])
    assert verdict.status is Status.FAILED
    assert "it could not run: the graph is no valid ONNX" in verdict.detail


def test_static_shapes_fails_when_shapes_could_not_be_inferred() -> None:
    verdict = static_shapes(chain("Tanh"), None)
    assert (verdict.status, verdict.detail) == (Status.FAILED, NO_SHAPES)


def test_static_shapes_passes_when_a_trailing_output_is_left_out() -> None:
    node = helper.make_node("LayerNormalization", ["x", "g"], ["y", "", ""], "ln", axis=-1)
    assert judged(model([node], [X], [Y], [constant("g", [1.0] * 4)])).status is Status.PASSED


def test_static_shapes_leaves_the_graph_unchanged_when_it_infers() -> None:
    made = chain("Tanh", "Relu")
    before = ir.to_proto(made).SerializeToString()
    judged(made)
    assert ir.to_proto(made).SerializeToString() == before


def test_static_shapes_fails_when_default_domain_is_not_imported() -> None:
    made = onnx.ModelProto()
    made.CopyFrom(ir.to_proto(chain("Tanh")))
    del made.opset_import[:]
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    assert "no version of the default operator set" in judged(ir.from_proto(made)).detail


def test_static_shapes_takes_integer_inputs_when_shapes_are_fixed() -> None:
    nodes = [helper.make_node("Gather", ["k", "i"], ["y"], "look_up")]
    made = model(nodes, [tensor("i", [3], TensorProto.INT64)], [tensor("y", [3])], [constant("k", [1.0, 2.0])])
    assert judged(made).status is Status.PASSED
