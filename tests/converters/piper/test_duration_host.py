from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.errors import Refusal
from converters.piper.duration_host import DurationParts, duration_parts
from converters.piper.voice import open_voice
from tests.converters.duration_voices import (
    ATTENTIVE,
    CONDITIONING,
    IDS,
    STATS,
    computed,
    settings,
    tokens,
)
from tests.converters.voices import opened, save
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised
from tests.vits_writer.names import numbered, numbers, renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

QUIET = (0.0, 1.3, 0.0)
"""Nothing drawn counts, and durations are longer than usual."""

STEPS = 200
"""More frames than `IDS` take."""

RECIPES = [Recipe(), Recipe(seed=3, opset=18), ATTENTIVE, Recipe(duration_noise=False)]


def noises(recipe: Recipe, spread: float = 0.0) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    channels = {"noise_latent": recipe.latent, **({"noise_duration": 2} if recipe.duration_noise else {})}
    return {name: (rng.standard_normal((1, n, STEPS)) * spread).astype(np.float32) for name, n in channels.items()}


def wider(array: Array, width: int) -> Array:
    """`array` with numbers behind its last token that mean nothing."""
    spare = np.random.default_rng(0).standard_normal((1, array.shape[1], width - array.shape[2])) * 1000
    return np.concatenate([array, spare.astype(np.float32)], axis=-1)


def host_feed(recipe: Recipe, given: dict[str, Array], **others: Array) -> dict[str, Array]:
    feed = {name: given[name] for name in ("stats", "conditioning")}
    return {**feed, "input_lengths": tokens()["input_lengths"], **settings(QUIET), **noises(recipe), **others}


@pytest.mark.parametrize("recipe", RECIPES)
def test_encoder_gives_what_the_voice_computes_at_the_seam(tmp_path: Path, recipe: Recipe) -> None:
    voice = opened(tmp_path, recipe)
    before = serialised(voice.model)
    encoder = duration_parts(voice).encoder
    check(encoder)
    wanted, got = computed(recipe, {**tokens(), **settings(QUIET)}), run(encoder, tokens())
    for name in ("stats", "conditioning"):
        np.testing.assert_array_equal(got[name], wanted[name])
    assert serialised(voice.model) == before


def test_encoder_takes_ids_and_their_count_and_nothing_else(tmp_path: Path) -> None:
    parts = duration_parts(opened(tmp_path, ATTENTIVE))
    assert [value.name for value in parts.encoder.graph.inputs] == ["input", "input_lengths"]
    assert [value.name for value in parts.encoder.graph.outputs] == ["stats", "conditioning"]
    assert not any(node.op_type.startswith("Random") for node in parts.encoder.graph)
    assert (parts.embedding, parts.duration_noises) == (None, ("noise_duration",))


@pytest.mark.parametrize("recipe", RECIPES)
def test_encoder_gives_the_same_where_ids_are_padded(tmp_path: Path, recipe: Recipe) -> None:
    encoder = duration_parts(opened(tmp_path, recipe)).encoder
    wanted, got = run(encoder, tokens()), run(encoder, tokens(width=40))
    for name in ("stats", "conditioning"):
        assert snr_db(wanted[name], got[name][..., : len(IDS)]) >= 110.0


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("width", [len(IDS), 40])
def test_host_makes_of_statistics_of_any_width_what_the_voice_makes(tmp_path: Path, recipe: Recipe, width: int) -> None:
    host = duration_parts(opened(tmp_path, recipe)).host
    check(host)
    wanted = computed(recipe, {**tokens(), **settings(QUIET)})
    given = {name: wider(wanted[name], width) for name in ("stats", "conditioning")}
    got = run(host, host_feed(recipe, given))
    assert sorted(got) == ["durations", "y_mask", "z"]
    for name, array in got.items():
        np.testing.assert_array_equal(array, wanted[name])
    assert got["durations"].shape == (1, 1, len(IDS))
    assert got["durations"].sum() == got["z"].shape[-1]


def test_host_does_without_ids_and_the_text_encoder(tmp_path: Path) -> None:
    host = duration_parts(opened(tmp_path, ATTENTIVE)).host
    names = ["stats", "conditioning", "input_lengths", "scales", "noise_duration", "noise_latent"]
    assert [value.name for value in host.graph.inputs] == names
    assert not {"MatMul", "Softmax"} & {node.op_type for node in host.graph if "enc_p" in (node.name or "")}


def test_host_draws_durations_and_latent_of_its_noises(tmp_path: Path) -> None:
    recipe = Recipe()
    host = duration_parts(opened(tmp_path, recipe)).host
    given = computed(recipe, {**tokens(), **settings(QUIET)})
    loud: dict[str, Any] = {**settings((0.667, 1.3, 3.0)), **noises(recipe, 1.0)}
    quiet, drawn = run(host, host_feed(recipe, given)), run(host, host_feed(recipe, given, **loud))
    again = run(host, host_feed(recipe, given, **loud))
    np.testing.assert_array_equal(drawn["z"], again["z"])
    assert (quiet["durations"] != drawn["durations"]).any()


@pytest.mark.parametrize("recipe", [Recipe(speakers=3), Recipe(attention=True, layers=1, speakers=2)])
def test_encoder_takes_the_speakers_embedding_and_the_host_half_gives_it(tmp_path: Path, recipe: Recipe) -> None:
    parts = duration_parts(opened(tmp_path, recipe))
    assert [value.name for value in parts.encoder.graph.inputs] == ["input", "input_lengths", "g"]
    assert parts.embedding is not None
    for speaker in range(2):
        sid: dict[str, Array] = {"sid": np.array([speaker], np.int64)}
        wanted = computed(recipe, {**tokens(), **settings(QUIET), **sid})
        embedded = run(parts.embedding, sid)
        got = run(parts.encoder, {**tokens(), **embedded})
        for name in ("stats", "conditioning"):
            np.testing.assert_array_equal(got[name], wanted[name])
        spoken = run(parts.host, host_feed(recipe, wanted, **sid))
        np.testing.assert_array_equal(spoken["g"], embedded["g"])
        np.testing.assert_array_equal(spoken["z"], wanted["z"])


def parts_of(folder: Path, model: Any) -> DurationParts:
    return duration_parts(open_voice(save(folder / "voice.onnx", model)))


def test_parts_are_found_whatever_the_names(tmp_path: Path) -> None:
    model = voice_model(ATTENTIVE)
    called = numbers(model)
    parts = parts_of(tmp_path, numbered(model))
    wanted = computed(ATTENTIVE, {**tokens(), **settings(QUIET)})
    got = run(parts.encoder, {called[name]: array for name, array in tokens().items()})
    np.testing.assert_array_equal(got["conditioning"], wanted["conditioning"])
    feed = host_feed(ATTENTIVE, wanted)
    spoken = run(parts.host, {called.get(name, name): array for name, array in feed.items()})
    np.testing.assert_array_equal(spoken["z"], wanted["z"])


def test_parts_of_a_voice_whose_values_have_their_names_are_right(tmp_path: Path) -> None:
    taken = {"enc_p.emb.weight": "stats", CONDITIONING: "durations", STATS: "z", "/Exp_output_0": "conditioning"}
    parts = parts_of(tmp_path, renamed(voice_model(), taken))
    wanted = computed(Recipe(), {**tokens(), **settings(QUIET)})
    np.testing.assert_array_equal(run(parts.encoder, tokens())["stats"], wanted["stats"])
    np.testing.assert_array_equal(run(parts.host, host_feed(Recipe(), wanted))["z"], wanted["z"])


def test_parts_are_refused_when_the_encoder_reads_further_inputs(tmp_path: Path) -> None:
    text = "its duration encoder also reads prosody_features; it is supported where it reads input, input_lengths and"
    with pytest.raises(Refusal, match=text):
        duration_parts(opened(tmp_path, Recipe(prosody=True)))
