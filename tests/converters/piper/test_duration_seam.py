from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import helper

from contracts.errors import Refusal
from converters.piper.duration_seam import DurationSeam, find_duration_seam
from converters.piper.voice import open_voice
from surgery.graph import value_named
from tests.converters.duration_voices import ATTENTIVE, CONDITIONING, DURATIONS, STATS
from tests.converters.voices import save
from tests.vits_writer.names import numbered, numbers
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

AS_WRITTEN = DurationSeam(STATS, CONDITIONING, DURATIONS)


def found(folder: Path, model: onnx.ModelProto) -> DurationSeam:
    """The seam of a voice as it was exported, where random operators draw."""
    voice = open_voice(save(folder / "voice.onnx", model))
    graph = voice.model.graph
    drawn = [value for node in graph if node.op_type.startswith("Random") for value in node.outputs]
    latent, mask, scales = (value_named(graph, n) for n in (voice.seam.latent, voice.seam.mask, voice.inputs.scales))
    return find_duration_seam(graph, latent, mask, [*drawn, scales], "the voice")


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(opset=18, latent=4, hidden=6),
        Recipe(duration_noise=False),
        Recipe(speakers=3),
        Recipe(latent=8, hidden=16),  # as many channels in statistics and conditioning
        ATTENTIVE,
        Recipe(attention=True, duration_flows=True, layers=1, duration_noise=False),
        Recipe(attention=True, duration_flows=True, layers=1, speakers=2),
    ],
)
def test_seam_is_the_two_convolutions_and_the_rounded_durations(tmp_path: Path, recipe: Recipe) -> None:
    assert found(tmp_path, voice_model(recipe)) == AS_WRITTEN


@pytest.mark.parametrize("recipe", [Recipe(), ATTENTIVE])
def test_seam_is_found_whatever_the_names(tmp_path: Path, recipe: Recipe) -> None:
    model = voice_model(recipe)
    called = numbers(model)
    assert found(tmp_path, numbered(model)) == DurationSeam(called[STATS], called[CONDITIONING], called[DURATIONS])


def node_of(model: onnx.ModelProto, output: str) -> onnx.NodeProto:
    node: onnx.NodeProto
    (node,) = [node for node in model.graph.node if output in node.output]
    return node


def insert(model: onnx.ModelProto, output: str, *nodes: onnx.NodeProto) -> None:
    """Put `nodes` ahead of the node that makes `output`."""
    place = next(i for i, node in enumerate(model.graph.node) if output in node.output)
    for node in reversed(nodes):
        model.graph.node.insert(place, node)


def test_seam_is_refused_when_the_encoder_draws(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"^the voice: .*the statistics of the latent depend on the scales, or on a draw"):
        found(tmp_path, voice_model(Recipe(encoder_noise=True)))


def test_seam_is_refused_when_statistics_are_of_two_convolutions(tmp_path: Path) -> None:
    model = voice_model()
    proj = node_of(model, STATS)
    masked = next(node for node in model.graph.node if STATS in node.input)
    insert(
        model,
        masked.output[0],
        helper.make_node("Conv", list(proj.input), ["more"], "more"),
        helper.make_node("Add", [STATS, "more"], ["summed"], "summed"),
    )
    masked.input[list(masked.input).index(STATS)] = "summed"
    text = "one convolution is expected that gives the statistics of the latent, and there are 2: "
    with pytest.raises(Refusal, match=re.escape(text) + ".*node 'more'"):
        found(tmp_path, model)


def test_seam_is_refused_when_durations_are_told_from_two_convolutions(tmp_path: Path) -> None:
    model = voice_model()
    proj, rises = node_of(model, CONDITIONING), node_of(model, "/Exp_output_0")
    drawn = rises.input[0]
    insert(
        model,
        "/Exp_output_0",
        helper.make_node("Conv", list(proj.input), ["more"], "more"),
        helper.make_node("Add", [drawn, "more"], ["summed"], "summed"),
    )
    rises.input[0] = "summed"
    text = "one convolution is expected that gives what the durations are told from, and there are 2: "
    with pytest.raises(Refusal, match=re.escape(text) + ".*node 'more'"):
        found(tmp_path, model)


def test_seam_is_refused_when_nothing_rounds_the_durations(tmp_path: Path) -> None:
    model = voice_model()
    node_of(model, DURATIONS).op_type = "Identity"
    text = "rounds the durations (Ceil, Floor, Round), and there are 0; --stage decoder needs none."
    with pytest.raises(Refusal, match=re.escape(text)):
        found(tmp_path, model)
