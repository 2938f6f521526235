"""A trimmed decoder against the untrimmed one on the same window, at all three places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.contract import Trim
from contracts.errors import Refusal
from surgery.declaration import EXACT_PARITY_DB
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.trim_decoder import trim_decoder, trimmed_frames
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, decoder, decoder_feed, latent, serialised, static_shapes
from tests.surgery.refusals import small_decoder
from tests.vits_writer.recipe import HIGH, LOW, MEDIUM, X_LOW, Recipe
from tests.vits_writer.voice import decoder_model

LEFT, EMITTED = 16, 12
WINDOW = LEFT + EMITTED + LEFT
PLACES = ("beginning", "between", "end")

RECIPES = {
    "x_low": X_LOW,
    "low": LOW,
    "medium": MEDIUM,
    "high": HIGH,
    "small": Recipe(),
    "odd strides": Recipe(strides=(5, 3)),
    "one stride": Recipe(strides=(3,)),
    "no stride": Recipe(strides=()),
    "a newer exporter": Recipe(exporter="dynamo"),
}


def one_hot(place: str) -> Array:
    hot: Array = np.eye(3, dtype=np.float32)[PLACES.index(place)].reshape(1, 3, 1, 1)
    return hot


def static(recipe: Recipe) -> ir.Model:
    return normalise_static_inputs(static_shapes(recipe, WINDOW)).rewrite(decoder(recipe)).model


def promised(place: str, frames: int) -> tuple[slice, slice]:
    """Frames of the window, and of what comes out, that are alike (`contracts.contract.Trim`)."""
    m = (frames - EMITTED) // 2
    if place == "beginning":
        return slice(0, EMITTED + m), slice(0, EMITTED + m)
    if place == "end":
        return slice(WINDOW - EMITTED - m, WINDOW), slice(m, frames)
    return slice(LEFT, LEFT + EMITTED), slice(m, m + EMITTED)


def samples(audio: Array, frames: slice, hop: int) -> Array:
    return audio[..., frames.start * hop : frames.stop * hop]


def compare(untrimmed: ir.Model, trimmed: ir.Model, feed: dict[str, Array], hop: int, frames: int) -> None:
    whole = run(untrimmed, feed)["audio"]
    for place in PLACES:
        cut = run(trimmed, {**feed, "place": one_hot(place)})["audio"]
        assert cut.shape == (*whole.shape[:-1], frames * hop)
        there, here = promised(place, frames)
        assert snr_db(samples(whole, there, hop), samples(cut, here, hop)) >= EXACT_PARITY_DB


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_trim_decoder_gives_the_samples_that_it_promises_at_every_place(recipe: Recipe) -> None:
    untrimmed = static(recipe)
    before = serialised(untrimmed)
    done = trim_decoder("y_mask", LEFT, EMITTED).rewrite(untrimmed)
    assert done.refused == ()
    check(done.model)
    frames = trimmed_frames(decoder(recipe), "y_mask", EMITTED)
    compare(untrimmed, done.model, decoder_feed(recipe, WINDOW), recipe.hop, frames)
    assert serialised(untrimmed) == before


# Kernel 7 in front: 3 frames; the transposed one: 1; then, 8 steps a frame, the widest block: (7 - 1) / 2 (3 + 12) = 45
# of Piper's medium quality and (11 - 1) / 2 (1 + 3 + 5 + 3) = 60 of its high one; and what is behind the next one.
@pytest.mark.parametrize(("recipe", "contexts"), [(MEDIUM, (11, 1)), (X_LOW, (11, 1)), (HIGH, (13, 2))])
def test_trim_decoder_crops_to_what_is_needed_after_the_flow_and_after_the_first_upsampling(
    recipe: Recipe, contexts: tuple[int, ...]
) -> None:
    done = trim_decoder("y_mask", LEFT, EMITTED).rewrite(static(recipe))
    cropped = [v for n in done.model.graph for v in n.outputs if str(v.name).endswith("/cropped")]
    sizes = [value.shape[2] for value in cropped if value.shape is not None]
    assert sizes == [(EMITTED + 2 * context) * rate for context, rate in zip(contexts, (1, 8), strict=True)]
    assert done.hits == 2
    assert trimmed_frames(decoder(recipe), "y_mask", EMITTED) == EMITTED + 2 * contexts[-1]


def test_trim_decoder_leaves_no_size_that_is_true_no_more_when_the_file_states_them() -> None:
    told = ir.from_proto(onnx.shape_inference.infer_shapes(ir.to_proto(static(MEDIUM))))
    assert all(value.shape is not None for node in told.graph for value in node.outputs)
    made = ir.to_proto(trim_decoder("y_mask", LEFT, EMITTED).rewrite(told).model)
    stated = {info.name: info for info in made.graph.value_info}
    del made.graph.value_info[:]
    inferred = {info.name: info for info in onnx.shape_inference.infer_shapes(made).graph.value_info}
    sized = [name for name, info in stated.items() if info.type.tensor_type.HasField("shape") and name in inferred]
    assert any(name.endswith("/cropped") for name in sized)
    assert all(stated[name].type == inferred[name].type for name in sized)


def test_trim_decoder_crops_in_front_of_the_division_and_the_activation_of_the_upsampling() -> None:
    graph = trim_decoder("y_mask", LEFT, EMITTED).rewrite(static(MEDIUM)).model.graph
    *_, last = [n.outputs[0] for n in graph if str(n.name).endswith("/cropped")]
    assert [use.node.op_type for use in last.uses()] == ["Div"]


def test_trim_decoder_follows_a_speaker_that_is_the_same_on_every_frame() -> None:
    recipe = MEDIUM
    proto = decoder_model(recipe)
    name = "/dec/conv_pre/Conv_output_0"
    for node in proto.graph.node:
        node.input[:] = ["conditioned" if value == name else value for value in node.input]
    position = next(i for i, node in enumerate(proto.graph.node) if name in node.output)
    proto.graph.node.insert(position + 1, helper.make_node("Add", [name, "g"], ["conditioned"], "cond"))
    proto.graph.input.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, [1, recipe.decoder, 1]))
    shapes = {**static_shapes(recipe, WINDOW), "g": (1, recipe.decoder, 1)}
    untrimmed = normalise_static_inputs(shapes).rewrite(ir.from_proto(proto)).model
    done = trim_decoder("y_mask", LEFT, EMITTED).rewrite(untrimmed)
    assert done.refused == ()
    g = np.random.default_rng(4).standard_normal((1, recipe.decoder, 1)).astype(np.float32)
    compare(untrimmed, done.model, {**decoder_feed(recipe, WINDOW), "g": g}, recipe.hop, EMITTED + 2)


def test_trim_decoder_tells_what_to_compare_between_two_windows() -> None:
    recipe = MEDIUM
    done = trim_decoder("y_mask", LEFT, EMITTED, "where").rewrite(static(recipe))
    (given,), (cropped,) = done.interface.given, done.interface.cropped
    assert (given.name, given.shape, given.values, given.dtype) == ("where", (1, 3, 1, 1), (0, 1, 0), "float32")
    assert Trim("where", EMITTED + 2)  # one frame on either side
    hop = recipe.hop
    assert cropped.name == "audio"
    assert cropped.before == (LEFT * hop, (LEFT + EMITTED) * hop)
    assert cropped.after == (hop, (1 + EMITTED) * hop)


def test_trim_decoder_leaves_the_frames_of_a_shorter_utterance_as_the_untrimmed_one_has_them() -> None:
    recipe = MEDIUM
    untrimmed = static(recipe)
    trimmed = trim_decoder("y_mask", LEFT, EMITTED).rewrite(untrimmed).model
    feed = {"z": latent(recipe, WINDOW), "y_mask": np.ones((1, 1, WINDOW), np.float32)}
    feed["y_mask"][..., LEFT + 5 :] = 0
    compare(untrimmed, trimmed, feed, recipe.hop, EMITTED + 2)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: decoder(Recipe(mask=False)), "a node that multiplies by the mask is needed at input 'y_mask'"),
        (lambda: small_decoder(auto_pad="VALID"), "explicit pads is needed at node 'net'"),
    ],
)
def test_trimmed_frames_refuses_by_a_sentence_when_the_pass_would(build: Callable[[], ir.Model], sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        trimmed_frames(build(), "y_mask", EMITTED)


def test_trim_decoder_asks_for_a_window_that_emits_something() -> None:
    with pytest.raises(ValueError, match="one frame at least, not 0"):
        trim_decoder("y_mask", LEFT, 0)
