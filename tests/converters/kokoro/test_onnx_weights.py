from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from contracts.errors import Refusal
from converters.kokoro.float_graph import float_graph
from converters.kokoro.graph_modules import GraphModules
from converters.kokoro.onnx_weights import Recovered, recover
from tests.kokoro_writer.checkpoint import SMALL, Weights, random_weights
from tests.kokoro_writer.export import float_export, folded, graph_path, int8_export
from tests.onnx_runs import run, snr_db

NORM_ERROR = 1e-6
"""Relative, of a weight that went through its norm in float32 twice."""


def recovered(model: onnx.ModelProto) -> Recovered:
    graph = float_graph(ir.from_proto(model), "kokoro.onnx").model.graph
    return recover(graph, GraphModules(graph, "kokoro.onnx"), SMALL)


def plain(weights: Weights) -> Weights:
    """Convolutions folded, the rest as it is."""
    made = {name: array for name, array in weights.items() if not name.endswith((".weight_g", ".weight_v"))}
    stems = [name.removesuffix(".weight_v") for name in weights if name.endswith(".weight_v")]
    return {**made, **{f"{stem}.weight": folded(weights, stem) for stem in stems}}


@pytest.fixture(scope="module")
def int8() -> onnx.ModelProto:
    return int8_export(random_weights())


def changed(change: Callable[[onnx.ModelProto], None]) -> onnx.ModelProto:
    model = float_export(random_weights())
    change(model)
    return model


def initializer(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    found: onnx.TensorProto = next(held for held in model.graph.initializer if held.name == name)
    return found


def test_recover_gives_every_weight_when_the_export_is_float() -> None:
    wanted, got = random_weights(), recovered(float_export(random_weights())).weights
    assert {name: array.shape for name, array in got.items()} == {name: a.shape for name, a in wanted.items()}
    for name, array in plain(wanted).items():
        assert np.allclose(plain(got)[name], array, rtol=NORM_ERROR, atol=NORM_ERROR), name


def test_recover_gives_every_weight_within_its_step_when_the_export_is_int8(int8: onnx.ModelProto) -> None:
    wanted, got = plain(random_weights()), plain(recovered(int8).weights)
    assert wanted.keys() == got.keys()
    for name, array in wanted.items():
        step = (max(float(array.max()), 0) - min(float(array.min()), 0)) / 255
        # The zero point is rounded too, so the outermost values may be off by a whole step.
        assert np.abs(got[name] - array).max() <= 1.01 * step, name


def test_recover_leaves_biases_and_alphas_as_they_are_when_the_export_is_int8(int8: onnx.ModelProto) -> None:
    wanted, got = random_weights(), recovered(int8).weights
    exact = [name for name in wanted if "bias" in name or ".alpha" in name or name.endswith(("gamma", "beta"))]
    assert len(exact) > 200
    assert [name for name in exact if not np.array_equal(wanted[name], got[name])] == []


def test_recover_gives_gains_that_are_the_norms_of_rows() -> None:
    wanted, got = random_weights(), recovered(float_export(random_weights())).weights
    name = "decoder.module.generator.ups.0"
    norms = np.linalg.norm(got[f"{name}.weight_v"].astype(np.float64), axis=(1, 2))
    assert got[f"{name}.weight_g"].shape == (16, 1, 1)
    assert np.allclose(got[f"{name}.weight_g"][:, 0, 0], norms, rtol=NORM_ERROR)
    assert np.allclose(got[f"{name}.weight_g"], wanted[f"{name}.weight_g"], rtol=NORM_ERROR)


def test_recover_gives_v_one_and_g_zero_when_a_row_is_zero() -> None:
    weights = random_weights()
    name = "decoder.module.generator.resblocks.3.convs2.1"
    weights[f"{name}.weight_g"][1] = 0
    found = recovered(float_export(weights))
    assert np.all(found.weights[f"{name}.weight_v"][1] == 1)
    assert found.weights[f"{name}.weight_g"][:, 0, 0].tolist().count(0) == 1
    assert found.zero_rows == {name: 1}
    with torch.no_grad():
        v, g = (torch.from_numpy(found.weights[f"{name}.weight_{which}"].copy()) for which in "vg")
        weight = torch._weight_norm(v, g, 0).numpy()
    assert np.allclose(weight, folded(weights, name), atol=NORM_ERROR)


def test_recover_gives_an_lstm_that_computes_in_torch_what_the_graph_does_in_onnxruntime() -> None:
    model, name = float_export(random_weights()), "predictor.module.shared"
    node = next(node for node in model.graph.node if node.name == f"{graph_path(name)}/LSTM")
    given = np.random.default_rng(1).standard_normal((6, 1, 12)).astype(np.float32)
    lstm = torch.nn.LSTM(12, 4, bidirectional=True)
    got = {rest: array for rest, array in recovered(model).weights.items() if rest.startswith(f"{name}.")}
    lstm.load_state_dict({rest.removeprefix(f"{name}."): torch.from_numpy(array) for rest, array in got.items()})
    alone = helper.make_model(
        helper.make_graph(
            [node],
            "lstm",
            [helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, [6, 1, 12])],
            [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [6, 2, 1, 4])],
            [initializer(model, held) for held in node.input[1:]],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )
    (wanted,) = run(alone, {node.input[0]: given}).values()
    with torch.no_grad():
        measured = lstm(torch.from_numpy(given))[0].numpy()
    assert snr_db(wanted.transpose(0, 2, 1, 3).reshape(6, 1, 8), measured) > 120


def test_recover_reads_a_linear_layer_however_it_is_written() -> None:
    """As Gemm without transB, and as MatMul of a weight that an Identity passes on."""
    weights = random_weights()

    def rewrite(model: onnx.ModelProto) -> None:
        gemm = next(node for node in model.graph.node if node.name.endswith("encode/norm1/fc/Gemm"))
        del gemm.attribute[:]
        turned = numpy_helper.to_array(initializer(model, gemm.input[1])).T
        initializer(model, gemm.input[1]).CopyFrom(numpy_helper.from_array(turned.copy(), gemm.input[1]))
        product = next(node for node in model.graph.node if node.name == "/encoder/bert_encoder/MatMul")
        model.graph.node.insert(0, helper.make_node("Identity", [product.input[1]], ["passed"], "passed"))
        product.input[1] = "passed"

    got = recovered(changed(rewrite)).weights
    for name in ("decoder.module.encode.norm1.fc.weight", "bert_encoder.module.weight"):
        assert np.array_equal(got[name], weights[name])


def drop_bias(model: onnx.ModelProto) -> None:
    node = next(node for node in model.graph.node if node.name == "/encoder/F0_proj/Conv")
    del node.input[2]


def other_alpha(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        if node.name.startswith("/decoder/decoder/generator/noise_res.1/Sin"):
            node.op_type = "Cos"


def half_weight(model: onnx.ModelProto) -> None:
    held = initializer(model, "decoder.module.encode.conv2.w")
    held.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(held).astype(np.float16), held.name))


def another_weight(model: onnx.ModelProto) -> None:
    held = numpy_helper.from_array(np.ones((4, 4), np.float32), "more")
    model.graph.initializer.append(held)
    model.graph.node.append(helper.make_node("MatMul", ["style", "more"], ["made"], "/decoder/decoder/extra/MatMul"))
    model.graph.output.append(helper.make_tensor_value_info("made", TensorProto.FLOAT, [1, 4]))


def scaled_product(model: onnx.ModelProto) -> None:
    gemm = next(node for node in model.graph.node if node.name.endswith("encode/norm1/fc/Gemm"))
    gemm.attribute.append(helper.make_attribute("alpha", 2.0))


def one_direction(model: onnx.ModelProto) -> None:
    for which in "WRB":
        held = initializer(model, f"predictor.module.lstm.{which}")
        held.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(held)[:1], held.name))


def trained_norm(model: onnx.ModelProto) -> None:
    node = helper.make_node("InstanceNormalization", ["a", "gain", "shift"], ["made"], "/decoder/norm/Instance")
    model.graph.node.append(node)
    for name, number in (("gain", 1.5), ("shift", 0)):
        model.graph.initializer.append(numpy_helper.from_array(np.full(4, number, np.float32), name))
    model.graph.input.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 4, 5]))
    model.graph.output.append(helper.make_tensor_value_info("made", TensorProto.FLOAT, [1, 4, 5]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (drop_bias, "the node /encoder/F0_proj/Conv has no bias"),
        (other_alpha, r"no sine at /decoder/decoder/generator/noise_res\.1 has a factor that is alpha1\.0"),
        (half_weight, r"the weight decoder\.module\.encode\.conv2\.weight is float16, float32 is needed"),
        (another_weight, "the node /decoder/decoder/extra/MatMul has a weight that Kokoro does not have"),
        (scaled_product, "the node .*encode/norm1/fc/Gemm scales or turns what it multiplies"),
        (one_direction, "the node /encoder/predictor/lstm/LSTM is no LSTM of two directions"),
        (trained_norm, "the instance norm /decoder/norm/Instance does not scale by one and shift by zero"),
    ],
)
def test_recover_names_the_node_or_the_weight_when_it_is_another(
    change: Callable[[onnx.ModelProto], None], told: str
) -> None:
    with pytest.raises(Refusal, match=rf"^kokoro\.onnx: .*{told}"):
        recovered(changed(change))


def test_recover_reads_weights_that_constant_nodes_hold() -> None:
    def rewrite(model: onnx.ModelProto) -> None:
        held = initializer(model, "decoder.module.generator.conv_post.w")
        model.graph.node.insert(0, helper.make_node("Constant", [], [held.name], "constant", value=held))
        model.graph.initializer.remove(held)

    name = "decoder.module.generator.conv_post"
    got = plain(recovered(changed(rewrite)).weights)[f"{name}.weight"]
    assert np.allclose(got, folded(random_weights(), name), atol=NORM_ERROR)
