from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.onnx_runs import run, snr_db
from tests.vits_writer.duration import PROSODY_CHANNELS
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model
from tests.vits_writer_checks.durations_in_numpy import conditioning, deterministic, log_frames
from tests.vits_writer_checks.encoder_in_numpy import Weights, features
from tests.vits_writer_checks.feeds import feed_of, reader_of, seen_at, some_ids

STOCHASTIC = Recipe(attention=True, duration_flows=True)
SPEAKERS = replace(STOCHASTIC, speakers=3)
EVERYTHING = replace(SPEAKERS, languages=2, prosody=True, durations_output=True)
WIDE_NOISE = 4.0
"""As `noise_w`: every fifth value lies outside the spline's -5..5."""


def test_conditioning_is_vits_separable_convolutions_when_compared_with_their_definition() -> None:
    for recipe in (STOCHASTIC, SPEAKERS, replace(SPEAKERS, exporter="dynamo")):
        model = voice_model(recipe)
        weights, ids = Weights(model), some_ids(17)
        masked = reader_of(model, reader_of(model, "dp.proj.weight"))
        got = run(seen_at(model, [masked]), feed_of(model, ids))[masked][0]
        condition = weights("emb_g.weight")[1][:, None] if recipe.speakers > 1 else None
        x = features(weights, ids, recipe.heads, recipe.layers)
        assert snr_db(conditioning(weights, x, condition), got) >= 110


@pytest.mark.parametrize(
    ("recipe", "couplings"),
    [
        (STOCHASTIC, 2),
        (replace(STOCHASTIC, couplings=1), 1),
        (replace(STOCHASTIC, couplings=4, seed=2), 4),
        (replace(STOCHASTIC, exporter="dynamo"), 2),
    ],
)
def test_durations_are_the_inverse_of_the_splines_when_noise_is_wide(recipe: Recipe, couplings: int) -> None:
    model = voice_model(recipe)
    given = reader_of(model, reader_of(model, "dp.proj.weight"))
    noise = next(node.output[0] for node in model.graph.node if node.op_type == "RandomNormalLike")
    logw = next(node.input[0] for node in model.graph.node if node.op_type == "Exp")
    got = run(seen_at(model, [given, noise, logw]), feed_of(model, some_ids(40), scales=(0.0, 1.0, WIDE_NOISE)))
    scaled = got[noise][0].astype(np.float64) * WIDE_NOISE
    assert np.abs(scaled).max() > 5
    wanted = log_frames(Weights(model), got[given][0].astype(np.float64), scaled, couplings)
    assert snr_db(wanted, got[logw][0, 0]) >= 100


def test_durations_are_vits_deterministic_predictor_when_they_have_no_noise() -> None:
    recipe = replace(SPEAKERS, duration_noise=False)
    model = voice_model(recipe)
    weights, ids = Weights(model), some_ids(17)
    logw = next(node.input[0] for node in model.graph.node if node.op_type == "Exp")
    got = run(seen_at(model, [logw]), feed_of(model, ids))[logw][0, 0]
    x = features(weights, ids, recipe.heads, recipe.layers)
    assert snr_db(deterministic(weights, x, weights("emb_g.weight")[1][:, None]), got) >= 110


def test_durations_are_the_same_when_phonemes_are_padded_behind_the_real_ones() -> None:
    for recipe in (EVERYTHING, replace(EVERYTHING, duration_noise=False)):
        model = voice_model(recipe)
        ids = some_ids(16)
        padded = run(model, feed_of(model, ids, 9, (0.0, 1.0, 0.0)))["durations"][0]
        short = feed_of(model, ids, 9, (0.0, 1.0, 0.0))
        short |= {"input": short["input"][:, :9], "prosody_features": short["prosody_features"][:, :9]}
        assert snr_db(run(model, short)["durations"][0], padded[:9]) >= 100
        assert not padded[9:].any()


def test_spline_has_the_operators_that_the_exporter_leaves() -> None:
    """Counted in `/dp/flows.7` of en_US-joe-medium.onnx."""
    counts = Counter(node.op_type for node in voice_model(STOCHASTIC).graph.node if "/dp/flows.3/" in node.name)
    wanted = {"GatherND": 5, "GatherElements": 7, "Softmax": 2, "CumSum": 2, "Softplus": 1, "ScatterND": 10}
    assert {op: counts[op] for op in wanted} == wanted


def test_prosody_changes_durations_where_the_language_has_any() -> None:
    model = voice_model(replace(EVERYTHING, duration_noise=False))
    table = next(w for w in model.graph.initializer if w.name == "prosody_proj.weight")
    assert list(table.dims) == [3, PROSODY_CHANNELS]
    feed = feed_of(model, some_ids(12))
    other = {**feed, "prosody_features": feed["prosody_features"][:, ::-1]}
    changed = {}
    for language in (0, 1):
        lid = {"lid": np.array([language], np.int64)}
        changed[language] = np.abs(run(model, feed | lid)["durations"] - run(model, other | lid)["durations"]).max()
    assert changed[0] > 0.1
    assert changed[1] == 0
