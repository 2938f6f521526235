from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import onnx
import pytest

from tests.onnx_runs import Array, open_session, run, snr_db
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model
from tests.vits_writer_checks.encoder_in_numpy import Weights, statistics
from tests.vits_writer_checks.feeds import feed_of, reader_of, seen_at, some_ids

ATTENTION = Recipe(attention=True, hidden=8, heads=2, layers=2)
STATISTICS = "enc_p.proj.weight"


def encoder_of(model: onnx.ModelProto) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """Runs the graph up to `enc_p.proj`."""
    return open_session(seen_at(model, [reader_of(model, STATISTICS)]))


@pytest.mark.parametrize(
    "recipe",
    [
        ATTENTION,
        replace(ATTENTION, opset=17),
        replace(ATTENTION, layers=1, heads=4, seed=3),
        replace(ATTENTION, exporter="dynamo"),
    ],
)
def test_encoder_is_vits_relative_attention_when_compared_with_its_definition(recipe: Recipe) -> None:
    model = voice_model(recipe)
    session = encoder_of(model)
    for count in (1, 2, 4, 5, 6, 17):
        ids = some_ids(count)
        (stats,) = session(feed_of(model, ids)).values()
        wanted = statistics(Weights(model), ids, recipe.heads, recipe.layers)
        assert snr_db(wanted[None], stats) >= 110


@pytest.mark.parametrize("exporter", ["legacy", "dynamo"])
def test_encoder_gives_the_same_on_real_phonemes_when_others_are_padded_behind_them(
    exporter: Literal["legacy", "dynamo"],
) -> None:
    model = voice_model(replace(ATTENTION, exporter=exporter))
    session = encoder_of(model)
    for count, width in ((1, 16), (9, 16), (15, 16), (16, 16), (6, 40)):
        ids = np.concatenate([some_ids(count), np.full(width - count, 5, np.int64)])
        (padded,) = session(feed_of(model, ids, count)).values()
        (exact,) = session(feed_of(model, ids[:count])).values()
        assert snr_db(exact, padded[:, :, :count]) >= 110


def test_attention_layer_has_the_chains_that_the_exporter_leaves() -> None:
    """Counted in `/enc_p/encoder/attn_layers.1` of en_US-joe-medium.onnx, and its two unnamed Concats and Slice."""
    model = voice_model(ATTENTION)
    counts = Counter(node.op_type for node in model.graph.node if "/attn_layers.1/" in node.name)
    wanted = {"Pad": 6, "Reshape": 16, "Slice": 8, "MatMul": 4, "Shape": 4, "Conv": 4, "Where": 1, "Softmax": 1}
    assert {op: counts[op] for op in wanted} == wanted


def test_layer_norm_is_a_chain_up_to_opset_16_and_one_operator_from_17_on() -> None:
    for opset, operator, chain in ((16, 0, 8), (17, 4, 0)):
        counts = Counter(node.op_type for node in voice_model(replace(ATTENTION, opset=opset)).graph.node)
        assert (counts["LayerNormalization"], counts["ReduceMean"]) == (operator, chain)


def test_voice_speaks_when_the_encoder_is_of_attention() -> None:
    model = voice_model(ATTENTION)
    audio = run(model, feed_of(model, some_ids(12)))["output"]
    assert audio.size % ATTENTION.hop == 0
    assert np.abs(audio).max() > 0.01
