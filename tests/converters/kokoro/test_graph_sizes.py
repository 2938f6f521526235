from __future__ import annotations

from dataclasses import replace

import onnx
import onnx_ir as ir
import pytest

from contracts.errors import Refusal
from converters.kokoro.graph_modules import GraphModules
from converters.kokoro.graph_sizes import graph_sizes
from models.kokoro.config import KOKORO_82M, KokoroConfig
from tests.kokoro_writer.checkpoint import SMALL, random_weights
from tests.kokoro_writer.export import float_export


def sizes(model: onnx.ModelProto, assumed: KokoroConfig = KOKORO_82M) -> KokoroConfig:
    return graph_sizes(GraphModules(ir.from_proto(model).graph, "kokoro.onnx"), assumed)


def test_graph_sizes_are_those_the_graph_was_written_with() -> None:
    assert sizes(float_export(random_weights())) == SMALL


def test_graph_sizes_are_the_assumed_ones_where_no_weight_tells() -> None:
    assumed = replace(
        KOKORO_82M,
        plbert=replace(KOKORO_82M.plbert, num_attention_heads=4),
        istftnet=replace(KOKORO_82M.istftnet, gen_istft_hop_size=7),
    )
    found = sizes(float_export(random_weights()), assumed)
    assert (found.plbert.num_attention_heads, found.istftnet.gen_istft_hop_size) == (4, 7)


@pytest.mark.parametrize("path", ["generator/ups.0", "generator/resblocks.0/convs1.0"])
def test_graph_sizes_refuses_a_graph_when_its_generator_is_another(path: str) -> None:
    model = float_export(random_weights())
    for node in model.graph.node:
        if node.name.startswith(f"/decoder/decoder/{path}/"):
            node.name = node.name.replace(path, "elsewhere")
            node.output[0] = node.output[0].replace(path, "elsewhere")
    for output in model.graph.output:
        output.name = output.name.replace(f"{path}/", "elsewhere/")
    with pytest.raises(Refusal, match=r"kokoro\.onnx: is no Kokoro"):
        sizes(model)


def test_graph_sizes_refuses_a_weight_when_it_has_other_axes() -> None:
    weights = random_weights()
    model = float_export(weights)
    (tensor,) = (held for held in model.graph.initializer if held.name == "decoder.module.encode.conv2.w")
    tensor.dims.append(1)
    with pytest.raises(Refusal, match=r"encode/conv2/Conv has 4 axes, not 3"):
        sizes(model)
