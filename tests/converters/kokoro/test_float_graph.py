from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.errors import Refusal
from converters.kokoro.float_graph import GeneratorValues, float_graph, generator_values
from converters.kokoro.graph_modules import GraphModules
from tests.kokoro_writer.checkpoint import random_weights
from tests.kokoro_writer.export import float_export, int8_export
from tests.onnx_runs import Array, run, snr_db

GENERATOR = "/decoder/decoder/generator"

RECOVERED_DB = 25.0
"""Weights of 8 bits against the ones they were rounded from; 38 and more measured, products of few factors."""


@pytest.fixture(scope="module")
def exported() -> onnx.ModelProto:
    return float_export(random_weights())


@pytest.fixture(scope="module")
def int8() -> onnx.ModelProto:
    return int8_export(random_weights())


def drawn(model: onnx.ModelProto) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    feed: dict[str, Array] = {}
    for value in model.graph.input:
        shape = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == TensorProto.INT64
        feed[value.name] = np.zeros(shape, np.int64) if whole else rng.standard_normal(shape).astype(np.float32)
    return feed


def test_float_graph_leaves_a_float_graph_as_it_is(exported: onnx.ModelProto) -> None:
    found = float_graph(ir.from_proto(exported), "kokoro.onnx")
    assert not found.was_quantised
    assert [node.name for node in found.model.graph] == [node.name for node in exported.graph.node]


def test_float_graph_has_no_quantised_operator_and_computes_what_the_float_export_does(
    exported: onnx.ModelProto, int8: onnx.ModelProto
) -> None:
    found = float_graph(ir.from_proto(int8), "kokoro.onnx")
    assert found.was_quantised
    assert not [node.op_type for node in found.model.graph if "Integer" in node.op_type or "Quant" in node.op_type]
    feed = drawn(exported)
    wanted, got = run(exported, feed), run(found.model, feed)
    assert wanted.keys() == got.keys()
    assert min(snr_db(array, got[name]) for name, array in wanted.items()) > RECOVERED_DB


def test_float_graph_holds_weights_once_when_several_nodes_hold_them_alike(int8: onnx.ModelProto) -> None:
    graph = float_graph(ir.from_proto(int8), "kokoro.onnx").model.graph
    layer = "/encoder/bert/encoder/albert_layer_groups.0/albert_layers.0/attention"
    first, second = (
        next(node for node in graph if node.outputs[0].name == f"{layer}/{call}/MatMul_output_0")
        for call in ("query", "query_1")
    )
    assert first.inputs[1] is second.inputs[1]


def test_float_graph_names_the_node_when_an_operator_has_no_float_form() -> None:
    node = helper.make_node("QAttention", ["x"], ["y"], "attend", domain="com.microsoft")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    with pytest.raises(Refusal, match=r"kokoro\.onnx: its quantised operators cannot be made float: the node.*attend"):
        float_graph(ir.from_proto(model), "kokoro.onnx")


def test_generator_values_are_those_at_the_seam(exported: onnx.ModelProto, int8: onnx.ModelProto) -> None:
    wanted = GeneratorValues(
        x=f"{GENERATOR}/ups.0/x",
        har=f"{GENERATOR}/noise_convs.0/x",
        style="style",
        conv_post=f"{GENERATOR}/conv_post/Conv_output_0",
    )
    for model in (ir.from_proto(exported), float_graph(ir.from_proto(int8), "kokoro.onnx").model):
        assert generator_values(GraphModules(model.graph, "kokoro.onnx")) == wanted


def test_generator_values_refuses_a_generator_when_no_activation_is_before_it(exported: onnx.ModelProto) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(exported)
    for node in model.graph.node:
        if node.op_type == "LeakyRelu" and "ups.0" in node.name:
            node.op_type = "Relu"
            del node.attribute[:]
    with pytest.raises(Refusal, match=r"nothing like its activation is before generator\.ups\.0"):
        generator_values(GraphModules(ir.from_proto(model).graph, "kokoro.onnx"))


def test_generator_values_ends_behind_a_bias_when_that_is_added_apart(exported: onnx.ModelProto) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(exported)
    conv = next(node for node in model.graph.node if node.name == f"{GENERATOR}/conv_post/Conv")
    bias = numpy_helper.to_array(next(held for held in model.graph.initializer if held.name == conv.input[2]))
    model.graph.initializer.append(numpy_helper.from_array(bias.reshape(1, -1, 1), "spread"))
    del conv.input[2]
    model.graph.node.append(helper.make_node("Unsqueeze", [conv_bias := "flat", "axes"], ["column"], "column"))
    model.graph.initializer.append(numpy_helper.from_array(bias, conv_bias))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    model.graph.node.append(helper.make_node("Add", [conv.output[0], "column"], ["behind"], "behind"))
    assert generator_values(GraphModules(ir.from_proto(model).graph, "kokoro.onnx")).conv_post == "behind"
