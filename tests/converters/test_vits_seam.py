from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal
from converters.vits_seam import VitsSeam, find_vits_seam
from tests.gates.small_graphs import constant, proto, tensor
from tests.vits_writer.names import numbered, numbers
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import LATENT, MASK, voice_model

NOISE = "/RandomNormalLike_output_0"


def seam_of(model: onnx.ModelProto) -> VitsSeam:
    return find_vits_seam(ir.from_proto(model), "voice.onnx")


@pytest.mark.parametrize(
    ("recipe", "hop"),
    [
        (Recipe(), 16),
        (Recipe(strides=(8, 8, 4)), 256),
        (Recipe(strides=(5, 3)), 15),
        (Recipe(strides=(2, 2, 2, 2)), 16),
        (Recipe(strides=(3,), latent=2, flows=1, flow_layers=1), 3),
        (Recipe(latent=192, hidden=4, flows=4), 16),
        (Recipe(duration_noise=False), 16),
        (Recipe(encoder_noise=True), 16),
        (Recipe(opset=13), 16),
        (Recipe(opset=19), 16),
    ],
)
def test_seam_is_found_when_names_are_the_exporters_or_only_numbers(recipe: Recipe, hop: int) -> None:
    model = voice_model(recipe)
    assert seam_of(model) == VitsSeam(LATENT, MASK, NOISE, "output", None, hop)
    number = numbers(model)
    wanted = VitsSeam(number[LATENT], number[MASK], number[NOISE], number["output"], None, hop)
    assert seam_of(numbered(model)) == wanted


def test_seam_is_that_of_the_audio_when_another_output_has_noise_of_its_own() -> None:
    model = voice_model()
    model.graph.node.extend(
        [
            helper.make_node("RandomNormalLike", [LATENT], ["other_noise"]),
            helper.make_node("Mul", ["other_noise", "/Exp_1_output_0"], ["other_scaled"]),
            helper.make_node("Add", [LATENT, "other_scaled"], ["other"]),
        ]
    )
    model.graph.output.insert(0, helper.make_tensor_value_info("other", TensorProto.FLOAT, [None, None, None]))
    assert seam_of(model) == VitsSeam(LATENT, MASK, NOISE, "output", None, 16)


def test_seam_names_the_speakers_embedding_when_there_are_several_speakers() -> None:
    seam = seam_of(voice_model(Recipe(speakers=3)))
    assert (seam.speaker, seam.speaker_inputs) == ("/emb_g/Unsqueeze_output_0", ("sid",))


def _scaled_by(names: list[tuple[str, str]]) -> onnx.ModelProto:
    """The small voice whose noise goes through further products, each of the two values in its place of `names`."""
    model = voice_model()
    position, node = next((i, n) for i, n in enumerate(model.graph.node) if NOISE in n.input)
    others = [name for name in node.input if name != NOISE]
    for number, pair in enumerate(names):
        product = helper.make_node("Mul", list(pair), [f"scaled_{number}"])
        model.graph.node.insert(position + number, product)
    del node.input[:]
    node.input.extend([f"scaled_{len(names) - 1}", *others])
    return model


DEEP = 5000
"""Well past Python's limit of 1000 calls."""

WOVEN = 40
"""2^40 ways lead through so many products of a value with itself."""


def test_seam_is_found_when_the_noise_is_scaled_over_and_over() -> None:
    chain = [(NOISE if i == 0 else f"scaled_{i - 1}", "/Exp_1_output_0") for i in range(DEEP)]
    assert seam_of(_scaled_by(chain)).noise == NOISE


def _ladder(start: str) -> list[tuple[str, str]]:
    return [(start, start)] + [(f"scaled_{i}", f"scaled_{i}") for i in range(WOVEN - 1)]


def test_seam_is_found_when_many_ways_lead_to_the_noise() -> None:
    assert seam_of(_scaled_by(_ladder(NOISE))).noise == NOISE


def test_seam_is_refused_at_once_when_many_ways_lead_to_no_noise() -> None:
    with pytest.raises(Refusal, match="is not a VITS voice"):
        seam_of(_scaled_by(_ladder("/Exp_1_output_0")))


def _conv_net(op: str) -> onnx.ModelProto:
    nodes = [helper.make_node(op, ["x", "w"], ["y"], "net", strides=[2])]
    return proto(nodes, [tensor("x", [1, 1, 8])], [tensor("y", [1, 1, "n"])], [constant("w", np.ones((1, 1, 2)))])


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (voice_model(Recipe(strides=())), "no output comes from a transposed convolution"),
        (_conv_net("Conv"), "no output comes from a transposed convolution"),
        (voice_model(Recipe(noise=False)), r"no sum of a mean and scaled noise \(RandomNormalLike\)"),
        (_conv_net("ConvTranspose"), r"no sum of a mean and scaled noise \(RandomNormalLike\)"),
        (voice_model(Recipe(mask=False)), "no frame mask multiplies behind the latent"),
    ],
)
def test_seam_is_refused_by_name_of_what_is_missing(model: onnx.ModelProto, missing: str) -> None:
    with pytest.raises(
        Refusal, match=rf"^voice\.onnx: is not a VITS voice: {missing}.*; give one as piper's export_onnx writes it\.$"
    ):
        seam_of(model)


def test_seam_is_refused_when_the_decoder_reads_more_than_a_mask_and_a_speaker() -> None:
    model = voice_model()
    for node in model.graph.node:
        if node.name == "/Mul_7":
            node.input[0] = "louder"
    position = next(i for i, node in enumerate(model.graph.node) if node.name == "/Mul_7")
    flow = "/flow/flows.0/Concat_output_0"
    model.graph.node.insert(position, helper.make_node("Add", [flow, "/stats.0/Transpose_1_output_0"], ["louder"]))
    says = (
        r"reads more than a latent, a mask and a speaker embedding: /stats\.0.* \(from input, input_lengths, scales\)"
    )
    with pytest.raises(Refusal, match=says):
        seam_of(model)


def _conditioned(kind: int, shape: list[Any], nodes: list[onnx.NodeProto], read: str) -> onnx.ModelProto:
    """A voice of three speakers with the further input `more`, whose embedding `read` the decoder adds as well."""
    model = voice_model(Recipe(speakers=3))
    model.graph.input.append(helper.make_tensor_value_info("more", kind, shape))
    table = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "more.table"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "more.last"))
    for node in reversed(nodes):
        model.graph.node.insert(0, node)
    if read:
        node = next(node for node in model.graph.node if node.name == "/dec/cond/Conv")
        node.input[0] = read
    return model


LOOKED_UP = [
    helper.make_node("Gather", ["more.table", "more"], ["more.row"]),
    helper.make_node("Unsqueeze", ["more.row", "more.last"], ["more.column"]),
]


def test_seam_is_one_embedding_when_a_languages_is_added_to_the_speakers() -> None:
    model = _conditioned(TensorProto.INT64, [1], LOOKED_UP, "")
    speaker = next(node for node in model.graph.node if node.name == "/emb_g/Unsqueeze")
    speaker.output[0] = "alone"
    position = list(model.graph.node).index(speaker)
    both = helper.make_node("Add", ["alone", "more.column"], ["/emb_g/Unsqueeze_output_0"])
    model.graph.node.insert(position + 1, both)
    seam = seam_of(model)
    assert (seam.speaker, seam.speaker_inputs) == ("/emb_g/Unsqueeze_output_0", ("sid", "more"))


def test_seam_is_refused_by_the_inputs_when_two_embeddings_are_read_behind_the_latent() -> None:
    model = _conditioned(TensorProto.INT64, [1], LOOKED_UP, "more.column")
    with pytest.raises(Refusal, match=r"reads sid, more otherwise than through one speaker embedding"):
        seam_of(model)


@pytest.mark.parametrize(
    ("kind", "shape", "nodes"),
    [
        (TensorProto.FLOAT, [1, 8], [helper.make_node("Unsqueeze", ["more", "more.last"], ["more.column"])]),
        (TensorProto.INT64, [1, "phonemes"], LOOKED_UP),
    ],
)
def test_seam_is_refused_by_the_input_that_is_no_speakers_when_the_decoder_reads_it(
    kind: int, shape: list[Any], nodes: list[onnx.NodeProto]
) -> None:
    says = r"reads more than a latent, a mask and a speaker embedding: .* \(from more\)"
    with pytest.raises(Refusal, match=says):
        seam_of(_conditioned(kind, shape, nodes, "more.column"))


def test_seam_is_refused_when_the_noise_lies_inside_the_decoder() -> None:
    model = voice_model()
    position = next(i for i, node in enumerate(model.graph.node) if node.name == "/dec/ups.1/ConvTranspose")
    inside = model.graph.node[position].input[0]
    model.graph.node[position].input[0] = "noisy"
    model.graph.node.insert(position, helper.make_node("Add", [inside, "noise"], ["noisy"]))
    model.graph.node.insert(position, helper.make_node("RandomNormalLike", [inside], ["noise"]))
    with pytest.raises(Refusal, match="no frame mask multiplies behind the latent"):
        seam_of(model)
