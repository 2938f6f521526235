from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal
from converters.kokoro.graph_modules import GraphModules
from tests.kokoro_writer.checkpoint import random_weights
from tests.kokoro_writer.export import float_export

LAYER = "encoder/albert_layer_groups.0/albert_layers.0"


@pytest.fixture(scope="module")
def places() -> GraphModules:
    return GraphModules(ir.from_proto(float_export(random_weights())).graph, "kokoro.onnx")


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("bert.module.embeddings.LayerNorm", "/encoder/bert/embeddings/LayerNorm"),
        ("bert.module.encoder.albert_layer_groups.0.albert_layers.0.ffn", f"/encoder/bert/{LAYER}/ffn"),
        ("bert_encoder.module", "/encoder/bert_encoder"),
        ("text_encoder.module.cnn.1.0", "/encoder/text_encoder/cnn.1/cnn.1.0"),
        ("text_encoder.module.lstm", "/encoder/text_encoder/lstm"),
        ("predictor.module.lstm", "/encoder/predictor/lstm"),
        ("predictor.module.text_encoder.lstms.3.fc", "/encoder/predictor/text_encoder/lstms.3/fc"),
        ("predictor.module.shared", "/encoder/shared"),
        ("predictor.module.F0.1.norm2.fc", "/encoder/F0.1/norm2/fc"),
        ("predictor.module.N_proj", "/encoder/N_proj"),
        ("decoder.module.asr_res.0", "/decoder/decoder/asr_res/asr_res.0"),
        ("decoder.module.decode.3.pool", "/decoder/decoder/decode.3/pool"),
        ("decoder.module.generator.resblocks.3.convs2.1", "/decoder/decoder/generator/resblocks.3/convs2.1"),
    ],
)
def test_path_is_what_the_int8_file_has(places: GraphModules, module: str, path: str) -> None:
    assert places.path(module) == path
    assert places.has(module)


def test_path_follows_the_wrapper_when_it_is_another() -> None:
    names = ["/kmodel/decoder/generator/conv_post/Conv", "/kmodel/bert/embeddings/word_embeddings/Gather"]
    nodes = [helper.make_node("Relu", ["x"], [f"made_{place}"], name) for place, name in enumerate(names)]
    places = GraphModules(graph_of(nodes), "kokoro.onnx")
    assert places.path("decoder.module.F0_conv") == "/kmodel/decoder/F0_conv"
    assert places.path("predictor.module.F0.0.conv1") == "/kmodel/F0.0/conv1"
    assert places.path("predictor.module.lstm") == "/kmodel/predictor/lstm"


def test_graph_modules_refuses_a_graph_when_it_is_another_model() -> None:
    graph = graph_of([helper.make_node("Relu", ["x"], ["y"], "/dec/conv_pre/Conv")])
    with pytest.raises(Refusal, match=r"voice\.onnx: is no Kokoro: it has no node at /generator/conv_post"):
        GraphModules(graph, "voice.onnx")


def test_count_stops_when_a_number_is_missing(places: GraphModules) -> None:
    assert places.count("decoder.module.decode.{}.conv1") == 4
    assert places.count("text_encoder.module.cnn.{}.0") == 2
    assert places.count("decoder.module.absent.{}") == 0


def test_node_names_operators_and_path_when_there_is_none(places: GraphModules) -> None:
    with pytest.raises(Refusal, match="there is no LSTM or Gemm at /decoder/decoder/F0_conv; give the official"):
        places.node("decoder.module.F0_conv", "LSTM", "Gemm")


def test_weight_refuses_what_the_graph_computes(places: GraphModules) -> None:
    node = places.node("decoder.module.F0_conv", "Conv")
    with pytest.raises(Refusal, match="the weight of the node /decoder/decoder/F0_conv/Conv is computed in the graph"):
        places.weight(node, 0)


def graph_of(nodes: list[onnx.NodeProto]) -> ir.Graph:
    value = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
    made = [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [1]) for node in nodes]
    return ir.from_proto(helper.make_model(helper.make_graph(nodes, "g", value, made))).graph
