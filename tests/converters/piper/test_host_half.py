from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from contracts.errors import Refusal
from converters.piper.host_half import host_half
from converters.piper.voice import open_voice
from tests.converters.voices import opened, save, whole_voice
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check, serialised
from tests.vits_writer.names import renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

IDS = [1, 0, 20, 0, 14, 0, 30, 0, 33, 0, 2]
SPOKEN = (0.667, 1.0, 0.8)
STEPS = 200
"""More frames than `IDS` take."""


def feed(noise: float = 0.0, seed: int = 0, steps: int = STEPS) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((1, Recipe().latent, steps)).astype(np.float32)
    return {
        "input": np.array([IDS], np.int64),
        "input_lengths": np.array([len(IDS)], np.int64),
        "scales": np.array(SPOKEN, np.float32),
        "noise_duration": np.zeros((1, 2, steps), np.float32),
        "noise_latent": drawn * np.float32(noise),
    }


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(seed=3, opset=18)])
def test_host_half_on_zero_noise_is_the_voice_with_its_noise_scales_at_zero(tmp_path: Path, recipe: Recipe) -> None:
    voice = opened(tmp_path, recipe)
    before = serialised(voice.model)
    host = host_half(voice)
    check(host)
    wanted = whole_voice(recipe, IDS, (0.0, SPOKEN[1], 0.0))
    got = run(host, feed())
    for name in ("z", "y_mask"):
        np.testing.assert_array_equal(got[name], wanted[name])
    assert serialised(voice.model) == before


def test_host_half_has_the_voices_inputs_then_the_noises(tmp_path: Path) -> None:
    graph = host_half(opened(tmp_path)).graph
    assert [value.name for value in graph.inputs] == [
        "input",
        "input_lengths",
        "scales",
        "noise_duration",
        "noise_latent",
    ]
    assert [value.name for value in graph.outputs] == ["z", "y_mask"]
    assert not any(node.op_type.startswith("Random") for node in graph)
    assert not any(node.op_type == "ConvTranspose" for node in graph)


def test_host_half_cuts_noise_that_is_longer_than_needed(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    host = host_half(voice)
    long = run(host, feed(1.0))
    frames = long["z"].shape[-1]
    short_feed = feed(1.0)
    short_feed["noise_latent"] = short_feed["noise_latent"][..., :frames]
    short_feed["noise_duration"] = short_feed["noise_duration"][..., : len(IDS)]
    np.testing.assert_array_equal(run(host, short_feed)["z"], long["z"])


def test_host_half_gives_another_latent_for_another_draw_and_the_same_for_the_same(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    host = host_half(voice)
    first, again, other = (run(host, feed(1.0, seed))["z"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_host_half_is_linear_in_the_latents_noise(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    host = host_half(voice)
    silent, once, twice = (run(host, feed(noise))["z"] for noise in (0.0, 1.0, 2.0))
    np.testing.assert_allclose(twice - silent, 2 * (once - silent), rtol=1e-4, atol=1e-5)
    assert np.abs(once - silent).max() > 0.1


def test_host_half_makes_every_noise_an_input_when_the_encoder_has_its_own(tmp_path: Path) -> None:
    host = host_half(opened(tmp_path, Recipe(encoder_noise=True)))
    names = [value.name for value in host.graph.inputs]
    assert names == ["input", "input_lengths", "scales", "noise_duration_0", "noise_duration_1", "noise_latent"]


def test_host_half_has_no_noise_of_durations_when_the_voice_has_none(tmp_path: Path) -> None:
    host = host_half(opened(tmp_path, Recipe(duration_noise=False)))
    assert [value.name for value in host.graph.inputs] == ["input", "input_lengths", "scales", "noise_latent"]


def _with_random(position_of: str, made: onnx.NodeProto) -> onnx.ModelProto:
    model = voice_model()
    index = next(i for i, node in enumerate(model.graph.node) if node.name == position_of)
    made.output[0] = model.graph.node[index].output[0]
    model.graph.node[index].CopyFrom(made)
    return model


@pytest.mark.parametrize(
    "made",
    [
        helper.make_node("RandomNormalLike", ["/stats.0/Transpose_1_output_0"], [""], "odd", mean=1.0),
        helper.make_node("RandomNormalLike", ["/stats.0/Transpose_1_output_0"], [""], "odd", scale=0.5),
        helper.make_node("RandomNormal", [], [""], "odd", shape=[1, 8, 40]),
    ],
)
def test_host_half_is_refused_by_node_when_noise_is_no_standard_normal(tmp_path: Path, made: onnx.NodeProto) -> None:
    voice = open_voice(save(tmp_path / "voice.onnx", _with_random("/RandomNormalLike", made)))
    with pytest.raises(Refusal, match=rf"the random operator odd \({made.op_type}\) is no standard normal"):
        host_half(voice)


def test_host_half_keeps_a_voice_whose_values_have_its_names(tmp_path: Path) -> None:

    taken = {"enc_p.emb.weight": "z", "/enc_p/proj/Conv_output_0": "noise_latent", "/Mul_6_output_0": "y_mask"}
    voice = open_voice(save(tmp_path / "voice.onnx", renamed(voice_model(), taken)))
    host = host_half(voice)
    check(host)
    wanted = whole_voice(Recipe(), IDS, (0.0, SPOKEN[1], 0.0))
    np.testing.assert_array_equal(run(host, feed())["z"], wanted["z"])
