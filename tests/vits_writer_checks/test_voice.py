from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from converters.vits_seam import find_vits_seam
from tests.onnx_runs import run, snr_db
from tests.vits_writer.model import seam_values
from tests.vits_writer.names import numbered
from tests.vits_writer.recipe import HIGH, LOW, MEDIUM, QUALITIES, X_LOW, Recipe
from tests.vits_writer.streaming import write_streaming_pair
from tests.vits_writer.voice import decoder_model, seam_names, voice_json, voice_model
from tests.vits_writer_checks.feeds import feed_of, seen_at, some_ids

FULL = Recipe(attention=True, duration_flows=True, faithful=True, speakers=3, languages=2, prosody=True)
DYNAMO = replace(FULL, exporter="dynamo")
NO_NOISE = (0.0, 1.0, 0.0)


@pytest.mark.parametrize("quality", sorted(QUALITIES))
def test_quality_speaks_at_256_samples_a_frame(quality: str) -> None:
    model = voice_model(QUALITIES[quality])
    latent, _ = seam_names(QUALITIES[quality])
    got = run(seen_at(model, [latent, "output"]), feed_of(model, some_ids(9)))
    assert got["output"].shape == (1, 1, 1, got[latent].shape[2] * 256)
    assert 0.05 < got["output"].std() < 0.7


def test_qualities_have_pipers_sizes() -> None:
    """Of piper_train's `--quality` and the sample rates of its released voices."""
    assert [(q.latent, q.hidden, q.sample_rate) for q in (X_LOW, LOW)] == [(96, 96, 16000), (192, 16, 16000)]
    assert (MEDIUM.latent, MEDIUM.strides, MEDIUM.sample_rate) == (192, (8, 8, 4), 22050)
    assert (HIGH.latent, HIGH.strides, HIGH.sample_rate) == (192, (8, 8, 2, 2), 22050)
    blocks = {w.name: list(w.dims) for w in voice_model(HIGH).graph.initializer if "resblocks.11." in w.name}
    kinds = {f"convs{kind}.{i}" for kind in (1, 2) for i in range(3)}
    assert {name.split("resblocks.11.")[1].rsplit(".", 1)[0] for name in blocks} == kinds
    assert blocks["dec.resblocks.11.convs2.2.weight"][2] == 11


def test_residual_block_of_type_one_dilates_its_first_convolutions_only() -> None:
    nodes = {node.name: node for node in voice_model(HIGH).graph.node}
    found = [
        [next(a.ints[0] for a in nodes[f"/dec/resblocks.0/{kind}.{i}/Conv"].attribute if a.name == "dilations")]
        for kind in ("convs1", "convs2")
        for i in range(3)
    ]
    assert found == [[1], [3], [5], [1], [1], [1]]


@pytest.mark.parametrize("strides", [(5, 4, 3), (8, 8, 2), (10, 8, 2, 2), (8, 8, 4), (8, 8, 2, 2)])
def test_hop_is_the_product_of_the_strides(strides: tuple[int, ...]) -> None:
    recipe = Recipe(strides=strides)
    model = voice_model(recipe)
    latent, _ = seam_names(recipe)
    got = run(seen_at(model, [latent, "output"]), feed_of(model, some_ids(5)))
    assert got["output"].shape[3] == got[latent].shape[2] * np.prod(strides)


def test_inputs_are_named_and_ordered_as_piper_and_piper_plus_have_them() -> None:
    piper = ["input", "input_lengths", "scales"]
    for recipe, more in (
        (Recipe(), []),
        (Recipe(speakers=2), ["sid"]),
        (Recipe(languages=2), ["lid"]),
        (Recipe(prosody=True), ["prosody_features"]),
        (FULL, ["sid", "lid", "prosody_features"]),
        (DYNAMO, ["sid", "lid", "prosody_features"]),
    ):
        assert [value.name for value in voice_model(recipe).graph.input] == piper + more


@pytest.mark.parametrize("index", ["sid", "lid"])
def test_speaker_and_language_change_what_is_said(index: str) -> None:
    model = voice_model(replace(FULL, duration_noise=False, durations_output=True))
    feed = feed_of(model, some_ids(12), scales=NO_NOISE) | {"lid": np.array([1], np.int64)}
    other = feed | {index: np.array([0], np.int64)}
    durations = [run(model, f)["durations"] for f in (feed, other)]
    assert np.abs(durations[0] - durations[1]).max() > 0.1


def test_one_conditioning_convolution_serves_all_layers_when_the_voice_is_faithful() -> None:
    model = voice_model(FULL)
    names = [node.name for node in model.graph.node if "cond_layer" in node.name]
    assert names == ["/flow/flows.2/enc/cond_layer/Conv", "/flow/flows.0/enc/cond_layer/Conv"]
    dims = {w.name: list(w.dims) for w in model.graph.initializer}
    assert dims["flow.flows.0.enc.cond_layer.weight"] == [2 * FULL.hidden * FULL.flow_layers, FULL.hidden, 1]
    assert dims["flow.flows.0.enc.in_layers.0.weight"][2] == 5


def test_newer_exporter_says_the_same_in_other_operators_and_names() -> None:
    for recipe in (Recipe(), replace(FULL, durations_output=True), replace(FULL, duration_noise=False)):
        old, new = (voice_model(replace(recipe, exporter=kind)) for kind in ("legacy", "dynamo"))
        feed = feed_of(old, some_ids(12), scales=NO_NOISE)
        assert snr_db(run(old, feed)["output"], run(new, feed)["output"]) >= 120
        assert new.opset_import[0].version == 18
        assert (old.graph.name, new.graph.name) == ("torch_jit", "main_graph")


@pytest.mark.parametrize("opset", [13, 14, 17, 19])
def test_voice_is_the_same_in_every_opset(opset: int) -> None:
    old, new = (voice_model(replace(FULL, opset=number)) for number in (15, opset))
    feed = feed_of(old, some_ids(12), scales=NO_NOISE)
    assert snr_db(run(old, feed)["output"], run(new, feed)["output"]) >= 120
    assert new.opset_import[0].version == opset


def test_newer_exporter_leaves_no_name_of_a_module() -> None:
    model = voice_model(DYNAMO)
    values = [name for node in model.graph.node for name in node.output]
    assert all(re.fullmatch(r"output|[a-z0-9_]+?(_\d+)?", name) for name in values)
    assert len(set(values)) == len(values)
    assert all(node.name.startswith("node_") for node in model.graph.node)
    assert not any(w.name.startswith("/") for w in model.graph.initializer)


@pytest.mark.parametrize("recipe", [FULL, DYNAMO], ids=["legacy", "dynamo"])
def test_numbered_voice_says_the_same(recipe: Recipe) -> None:
    model = voice_model(recipe)
    feed = feed_of(model, some_ids(9), scales=NO_NOISE)
    other = numbered(model)
    by_number = {value.name: array for value, array in zip(other.graph.input, feed.values(), strict=True)}
    (audio,) = run(other, by_number).values()
    assert np.array_equal(audio, run(model, feed)["output"])


@pytest.mark.parametrize(
    "recipe",
    [MEDIUM, FULL, DYNAMO, Recipe(), Recipe(languages=2), replace(FULL, durations_output=True)],
)
def test_streaming_pair_says_what_the_whole_voice_says(recipe: Recipe, tmp_path: Path) -> None:
    whole = voice_model(recipe)
    feed = feed_of(whole, some_ids(9), scales=NO_NOISE)
    encoder_path, decoder_path = write_streaming_pair(tmp_path, recipe)
    assert (encoder_path.name, decoder_path.name) == ("encoder.onnx", "decoder.onnx")
    encoder, decoder = onnx.load(encoder_path), onnx.load(decoder_path)
    between = run(encoder, feed)
    names = ["z", "y_mask", "g"] if recipe.conditioned else ["z", "y_mask"]
    assert list(between) == names
    assert [value.name for value in decoder.graph.input] == names
    audio = run(decoder, between)["output"]
    wanted = run(whole, feed)["output"]
    assert audio.shape == (1, 1, wanted.size)
    assert np.array_equal(audio, wanted[0])


def test_decoder_model_is_the_voice_behind_the_seam_when_the_exporter_is_the_newer_one() -> None:
    recipe = replace(DYNAMO, speakers=1, languages=1, prosody=False)
    model = voice_model(recipe)
    names = seam_names(recipe)
    got = run(seen_at(model, [*names, "output"]), feed_of(model, some_ids(9)))
    seam = {value.name: got[name] for value, name in zip(seam_values(recipe), names, strict=True)}
    assert np.array_equal(run(decoder_model(recipe), seam)["audio"], got["output"])


def test_metadata_is_sherpas_when_it_is_asked_for() -> None:
    assert not voice_model().metadata_props
    model = voice_model(Recipe(speakers=3, metadata=True, sample_rate=22050))
    assert {p.key: p.value for p in model.metadata_props} == {
        "model_type": "vits",
        "comment": "piper",
        "language": "English",
        "voice": "en-us",
        "has_espeak": "1",
        "n_speakers": "3",
        "sample_rate": "22050",
    }


def test_json_lists_speakers_and_languages_when_there_are_several() -> None:
    config = voice_json(FULL)
    assert (config["num_speakers"], list(config["speaker_id_map"].values())) == (3, [0, 1, 2])
    assert (config["num_languages"], list(config["language_id_map"].values())) == (2, [0, 1])
    assert "num_languages" not in voice_json()


REAL_VOICE = """
Add 270, And 3, Cast 11, Ceil 1, Clip 1, Concat 138, ConstantOfShape 46, Conv 129, ConvTranspose 3, CumSum 7,
Div 81, Equal 25, Erf 24, Exp 6, Expand 90, GatherElements 21, GatherND 15, GreaterOrEqual 6, LeakyRelu 16,
Less 3, LessOrEqual 3, MatMul 26, Mul 268, Neg 10, NonZero 12, Not 3, Pad 58, Pow 39, RandomNormalLike 2,
Range 39, ReduceMax 1, ReduceMean 72, ReduceSum 4, Relu 6, Reshape 164, ScatterND 30, Shape 144, Sigmoid 16,
Softmax 12, Softplus 3, Split 9, Sqrt 39, Tanh 17, Transpose 141, Where 30
"""
"""Nodes of en_US-joe-medium.onnx (2755 in all), but for five operators that take indices apart."""


def test_voice_has_the_nodes_of_a_real_one_when_it_has_as_many_layers() -> None:
    model = voice_model(replace(MEDIUM, layers=6, couplings=4, flows=4, flow_layers=4))
    counts = Counter(node.op_type for node in model.graph.node)
    wanted = {op: int(number) for op, number in map(str.split, REAL_VOICE.split(","))}
    assert {op: number for op, number in counts.items() if op in wanted} == wanted
    assert counts.keys() - wanted.keys() == {"Gather", "Slice", "Squeeze", "Sub", "Unsqueeze"}


@pytest.mark.parametrize("recipe", [MEDIUM, HIGH, X_LOW, FULL, DYNAMO])
def test_seam_names_are_those_that_the_structure_gives(recipe: Recipe) -> None:
    seam = find_vits_seam(ir.from_proto(voice_model(recipe)), "voice.onnx")
    assert (seam.latent, seam.mask) == seam_names(recipe)
    assert (seam.speaker is not None) == recipe.conditioned
