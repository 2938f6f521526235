from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal
from converters.inflect.seam import Seam, SliceSeam, find_seam, find_slice
from surgery.mask_decoder import mask_decoder
from tests.converters.inflect.releases import INPUTS, SMALL, graphs
from tests.vits_writer.names import numbered, numbers
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model, voice_model

PUBLISHED = Seam("/Add_output_0", "y_mask", "m_p_exp", "zp_noise", "noise_scale", "waveform", 8)
"""The seam is the published file's (family-facts), the rest its interface; 4 x 2 samples a frame."""

WIDE = dataclasses.replace(SMALL, inter_channels=128, upsample_rates=(8, 2), upsample_kernel_sizes=(16, 4))


def found(model: onnx.ModelProto) -> Seam:
    return find_seam(ir.from_proto(model), "decode.onnx")


def node_of(model: onnx.ModelProto, output: str) -> onnx.NodeProto:
    (node,) = [node for node in model.graph.node if output in node.output]
    assert isinstance(node, onnx.NodeProto)
    return node


@pytest.mark.parametrize(("config", "hop"), [(SMALL, 8), (WIDE, 16)])
def test_find_seam_is_the_published_files_one(config: object, hop: int) -> None:
    assert isinstance(config, type(SMALL))
    assert found(graphs(config)[1]) == dataclasses.replace(PUBLISHED, hop=hop)


def test_find_seam_goes_by_structure_when_names_are_numbers() -> None:
    model = graphs()[1]
    named = {field: value for field, value in dataclasses.asdict(PUBLISHED).items() if field != "hop"}
    number = numbers(model)
    assert found(numbered(model)) == Seam(**{field: number[name] for field, name in named.items()}, hop=8)


@pytest.mark.parametrize("swapped", ["sum", "product"])
def test_find_seam_takes_operands_in_any_order(swapped: str) -> None:
    model = graphs()[1]
    node = node_of(model, "/Add_output_0")
    if swapped == "product":
        node = node_of(model, next(name for name in node.input if name != "m_p_exp"))
    node.input[:] = list(reversed(node.input))
    assert found(model) == PUBLISHED


def test_find_seam_has_no_scale_when_nothing_but_the_deviation_scales_the_noise() -> None:
    model = graphs()[1]
    scaled = node_of(model, next(name for name in node_of(model, "/Add_output_0").input if name != "m_p_exp"))
    kept = next(name for name in scaled.input if name != "noise_scale")
    node_of(model, "/Add_output_0").input[:] = ["m_p_exp", kept]
    model.graph.node.remove(scaled)
    del model.graph.input[INPUTS.index("noise_scale")]
    assert found(model) == dataclasses.replace(PUBLISHED, scale=None)


def test_find_seam_is_not_led_astray_when_another_sum_of_noise_feeds_another_output() -> None:
    model = graphs()[1]
    model.graph.node.append(helper.make_node("Mul", ["zp_noise", "/Exp_output_0"], ["again"]))
    model.graph.node.append(helper.make_node("Add", ["again", "/Add_output_0"], ["other"]))
    model.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, [1, 8, None]))
    assert found(model) == PUBLISHED


def _without_noise(model: onnx.ModelProto) -> None:
    node = node_of(model, "/Add_output_0")
    node.input[:] = ["m_p_exp", "logs_p_exp"]


def _noise_without_deviation(model: onnx.ModelProto) -> None:
    node_of(model, "/Add_output_0").input[:] = ["m_p_exp", "zp_noise"]


def _unmasked(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        if node.op_type == "Mul" and "y_mask" in node.input:
            node.op_type = "Add"


def _log_deviation_behind(model: onnx.ModelProto) -> None:
    node = node_of(model, "waveform")
    model.graph.node.insert(len(model.graph.node) - 1, helper.make_node("ReduceMax", ["logs_p_exp"], ["loudest"]))
    model.graph.node.append(helper.make_node("Mul", ["loudest", "quiet"], ["waveform"]))
    node.output[:] = ["quiet"]


def _mask_computed(model: onnx.ModelProto) -> None:
    model.graph.node.insert(0, helper.make_node("Abs", ["y_mask"], ["mask"]))
    for node in list(model.graph.node)[1:]:
        node.input[:] = ["mask" if name == "y_mask" else name for name in node.input]


def _no_upsampling(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        if node.op_type == "ConvTranspose":
            node.op_type = "Conv"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_without_noise, "no sum of a mean and of noise times its deviation"),
        (_noise_without_deviation, "no sum of a mean and of noise times its deviation"),
        (_unmasked, "y_mask is read behind the latent, and nothing is multiplied by it"),
        (_log_deviation_behind, "the frame mask alone should be read, not .*loudest"),
        (_mask_computed, "the frame mask should be an input, and mask is computed"),
        (_no_upsampling, "no output comes from a transposed convolution"),
    ],
)
def test_find_seam_says_what_is_missing(damage: object, told: str) -> None:
    model = graphs()[1]
    assert callable(damage)
    damage(model)
    with pytest.raises(Refusal, match=rf"^decode\.onnx: is not an Inflect v2 decoder: .*{told}"):
        found(model)


def test_find_seam_refuses_a_piper_voice_which_draws_its_noise() -> None:
    with pytest.raises(Refusal, match="no sum of a mean and of noise"):
        found(voice_model())


def slice_of(model: onnx.ModelProto) -> SliceSeam:
    return find_slice(ir.from_proto(model), "decoder_z.onnx")


def pinned(model: onnx.ModelProto, frames: int) -> onnx.ModelProto:
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[2].dim_value = frames
    return model


def test_find_slice_tells_its_ends_and_sizes() -> None:
    model = decoder_model(Recipe(latent=8, strides=(4, 2)))
    assert slice_of(model) == SliceSeam("z", "y_mask", "audio", 8, 8, None, False)
    assert slice_of(pinned(model, 64)) == SliceSeam("z", "y_mask", "audio", 8, 8, 64, False)


def test_find_slice_knows_the_mask_when_it_comes_first() -> None:
    model = decoder_model()
    first, second = model.graph.input
    latent, mask = onnx.ValueInfoProto(), onnx.ValueInfoProto()
    latent.CopyFrom(first)
    mask.CopyFrom(second)
    del model.graph.input[:]
    model.graph.input.extend([mask, latent])
    assert (slice_of(model).latent, slice_of(model).mask) == ("z", "y_mask")


def test_find_slice_sees_that_a_decoder_is_masked_already() -> None:
    masked = mask_decoder("y_mask").rewrite(ir.from_proto(decoder_model())).model
    seam = find_slice(masked, "decoder_z.onnx")
    assert seam == SliceSeam("z", "y_mask", "audio", 16, 8, None, True)


def _third_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, [1, 8, 1]))


def _open_width(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "channels"


def _two_masks(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_third_input, "a slice has two inputs, latent and mask, and this has 3"),
        (
            _open_width,
            r"its inputs state \[1, channels, frames\] and \[1, 1, frames\]; state there how many channels",
        ),
        (_two_masks, r"a latent \[1, C, N\] and a mask \[1, 1, N\] were expected, not \[1, 1, frames\] and"),
    ],
)
def test_find_slice_says_what_is_wrong(damage: object, told: str) -> None:
    model = decoder_model()
    assert callable(damage)
    damage(model)
    with pytest.raises(Refusal, match=rf"^decoder_z\.onnx: is not an Inflect v2 decoder: {told}"):
        slice_of(model)


def test_latents_of_both_releases_are_as_wide_as_the_facts_say() -> None:
    from models.inflect.config import MICRO, NANO

    assert (MICRO.inter_channels, NANO.inter_channels) == (192, 128)
    assert np.prod(MICRO.upsample_rates) == np.prod(NANO.upsample_rates) == 256
