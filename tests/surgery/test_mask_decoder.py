from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.mask_decoder import mask_decoder
from tests.onnx_runs import run, snr_db
from tests.surgery.graphs import check, decoder, decoder_feed, latent, serialised
from tests.surgery.refusals import small_decoder
from tests.vits_writer.names import numbered
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model

STRIDES = [(8, 8, 4), (5, 3), (2, 2, 2, 2), (3,)]
WINDOW, FRAMES = 48, 20

MASKED_SHORT_DB = 95.0
"""What an utterance shorter than its window must reach with the masks (the specification's issue)."""


@pytest.mark.parametrize("behind", ["zeros", "noise"])
@pytest.mark.parametrize("strides", STRIDES)
def test_mask_decoder_ends_a_padded_latent_as_the_full_length_decode_does(
    strides: tuple[int, ...], behind: str
) -> None:
    recipe = Recipe(strides=strides)
    original = decoder(recipe)
    z = latent(recipe, FRAMES)
    wanted = run(original, {"z": z, "y_mask": np.ones((1, 1, FRAMES), np.float32)})["audio"]
    padded = latent(recipe, WINDOW, seed=2) if behind == "noise" else np.zeros((1, recipe.latent, WINDOW), np.float32)
    padded[..., :FRAMES] = z
    mask = np.zeros((1, 1, WINDOW), np.float32)
    mask[..., :FRAMES] = 1
    feed = {"z": padded, "y_mask": mask}

    masked = run(mask_decoder("y_mask").rewrite(original).model, feed)["audio"]
    unmasked = run(original, feed)["audio"]

    end = FRAMES * recipe.hop
    assert snr_db(wanted, masked[..., :end]) >= MASKED_SHORT_DB
    assert snr_db(wanted, unmasked[..., :end]) < MASKED_SHORT_DB
    assert not masked[..., end:].any()


@pytest.mark.parametrize("strides", STRIDES)
def test_mask_decoder_changes_no_bit_when_the_mask_is_all_ones(strides: tuple[int, ...]) -> None:
    recipe = Recipe(strides=strides)
    original = decoder(recipe)
    before = serialised(original)
    done = mask_decoder("y_mask").rewrite(original)
    check(done.model)
    feed = decoder_feed(recipe, WINDOW)
    np.testing.assert_array_equal(run(done.model, feed)["audio"], run(original, feed)["audio"])
    assert serialised(original) == before


@pytest.mark.parametrize(("strides", "kernels"), [((8, 8, 4), (3, 5)), ((5, 3), (3,)), ((2, 2, 2, 2), (3, 5, 7))])
def test_mask_decoder_masks_every_convolution_of_the_decoder(
    strides: tuple[int, ...], kernels: tuple[int, ...]
) -> None:
    done = mask_decoder("y_mask").rewrite(decoder(Recipe(strides=strides, resblock_kernels=kernels)))
    # conv_pre and conv_post; for each stride the upsampling itself and two convolutions a residual block
    assert done.hits == 2 + len(strides) * (1 + 2 * len(kernels))
    masks = [
        node for node in done.model.graph if (node.name or "").startswith("mask_decoder/") and node.op_type == "Mul"
    ]
    assert len(masks) == done.hits
    assert done.refused == ()


@pytest.mark.parametrize("strides", STRIDES)
def test_mask_decoder_upsamples_the_mask_by_the_strides_of_the_graph(strides: tuple[int, ...]) -> None:
    graph = mask_decoder("y_mask").rewrite(decoder(Recipe(strides=strides))).model.graph
    made = [n for n in graph if (n.name or "").startswith("mask_decoder/") and n.op_type == "ConvTranspose"]
    assert [tuple(node.attributes["strides"].as_ints()) for node in made] == [(stride,) for stride in strides]
    for node in made:
        weight = node.inputs[1]
        assert weight is not None
        assert weight.const_value is not None
        assert (weight.const_value.numpy() == 1).all()
    assert not any(node.op_type in ("Resize", "Upsample") for node in graph)


def test_mask_decoder_masks_conv_pre_alone_at_the_base_rate_when_nothing_is_upsampled() -> None:
    done = mask_decoder("y_mask").rewrite(decoder(Recipe(strides=())))
    assert done.hits == 2
    assert not any(node.op_type == "ConvTranspose" for node in done.model.graph)


@pytest.mark.parametrize(
    ("op", "attributes", "rate"),
    [
        ("Conv", {"pads": [1, 1]}, 1),
        ("Conv", {"pads": [2, 0]}, 1),
        ("Conv", {"pads": [2, 2], "dilations": [2], "kernel_shape": [3], "group": 1, "auto_pad": "NOTSET"}, 1),
        ("ConvTranspose", {"strides": [3]}, 3),
        ("ConvTranspose", {"strides": [2], "pads": [1, 0]}, 2),
        ("ConvTranspose", {"strides": [2], "pads": [1, 1], "output_padding": [1]}, 2),
        ("ConvTranspose", {"strides": [4], "output_padding": [1]}, 4),
        ("ConvTranspose", {"strides": [5], "dilations": [2]}, 5),
    ],
)
def test_mask_decoder_masks_every_step_when_a_convolution_keeps_its_rate(
    op: str, attributes: dict[str, Any], rate: int
) -> None:
    done = mask_decoder("y_mask").rewrite(small_decoder(op, **attributes))
    assert (done.hits, done.refused) == (1, ())
    mask = np.array([[[1, 1, 1, 0, 0, 1, 1, 1]]], np.float32)
    audio = run(done.model, {"z": np.ones((1, 1, 8), np.float32), "y_mask": mask})["audio"]
    unmasked = run(small_decoder(op, **attributes), {"z": np.ones((1, 1, 8), np.float32), "y_mask": mask})["audio"]
    np.testing.assert_array_equal(audio, unmasked * np.repeat(mask, rate, axis=2))


def with_sum(op: str, name: str, recipe: Recipe) -> ir.Model:
    """The small decoder whose value `name` goes through `op` with `g` [1, channels, 1], as a speaker's is."""
    model = decoder_model(recipe)
    for node in model.graph.node:
        node.input[:] = ["conditioned" if value == name else value for value in node.input]
    position = next(i for i, node in enumerate(model.graph.node) if name in node.output)
    model.graph.node.insert(position + 1, helper.make_node(op, [name, "g"], ["conditioned"], "cond"))
    model.graph.input.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, [1, "channels", 1]))
    return ir.from_proto(model)


@pytest.mark.parametrize("op", ["Add", "Sub", "Sum"])
@pytest.mark.parametrize(
    ("name", "channels"), [("/dec/conv_pre/Conv_output_0", 16), ("/dec/ups.0/ConvTranspose_output_0", 8)]
)
def test_mask_decoder_masks_what_is_the_same_on_every_frame_too(op: str, name: str, channels: int) -> None:
    recipe = Recipe()
    original = with_sum(op, name, recipe)
    g = np.random.default_rng(4).standard_normal((1, channels, 1)).astype(np.float32)
    z = latent(recipe, FRAMES)
    wanted = run(original, {"z": z, "y_mask": np.ones((1, 1, FRAMES), np.float32), "g": g})["audio"]
    padding = [(0, 0), (0, 0), (0, WINDOW - FRAMES)]
    feed = {"z": np.pad(z, padding), "y_mask": np.pad(np.ones((1, 1, FRAMES), np.float32), padding), "g": g}
    done = mask_decoder("y_mask").rewrite(original)
    check(done.model)
    assert snr_db(wanted, run(done.model, feed)["audio"][..., : FRAMES * recipe.hop]) >= MASKED_SHORT_DB
    # The sum is masked in the place of the convolution in front of it.
    assert done.hits == mask_decoder("y_mask").rewrite(decoder(recipe)).hits


def test_mask_decoder_gives_each_node_a_name_of_its_own_when_the_graph_names_none() -> None:
    done = mask_decoder("1").rewrite(ir.from_proto(numbered(decoder_model())))
    names = [node.name for node in done.model.graph if node.name]
    assert len(names) == done.hits + len(Recipe().strides)
    assert len(set(names)) == len(names)


def test_mask_decoder_names_its_nodes_for_itself() -> None:
    original = decoder()
    before = {node.name for node in original.graph}
    new = {node.name for node in mask_decoder("y_mask").rewrite(original).model.graph} - before
    assert new
    assert all(name is not None and name.startswith("mask_decoder/") for name in new)
