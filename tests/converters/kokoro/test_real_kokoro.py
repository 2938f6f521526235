"""The default checkpoint, a real one: its recovered weights against the graph they are from, on a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.contract import Source
from converters.kokoro.opening import Opening
from converters.kokoro.package import KOKORO, VOICES
from converters.kokoro.source_proof import host_inputs
from converters.kokoro.utterances import YES
from converters.kokoro.voices import style_of, tokens_of
from converters.stages import Checkpoint, StageOptions
from models.kokoro.config import KOKORO_82M
from models.kokoro.runs import run
from surgery.graph import extract
from tests.onnx_runs import open_session, snr_db

WEIGHTS_DB = 120.0
"""Issue 5: recovered weights against the float-dequantised graph, at conv_post."""


@pytest.fixture(scope="module")
def opening(fetched_kokoro: Path, fetched_kokoro_voices: Path) -> Opening:
    source = Source(KOKORO.file, KOKORO.sha256, "package")
    checkpoint = Checkpoint(fetched_kokoro / KOKORO.file, source, material=fetched_kokoro_voices / VOICES.file)
    return Opening(checkpoint, StageOptions(window=32, context=8), open_session)


def test_default_checkpoint_is_kokoro_82m_with_weights_recovered_from_8_bit_ones(opening: Opening) -> None:
    found = opening.checkpoint
    assert (found.config, found.recovered, len(found.weights)) == (KOKORO_82M, True, 546)
    assert sum(array.size for array in found.weights.values()) > 81_000_000
    assert found.notes[0].startswith("The weights are recovered from 8-bit ones (int8)")


def test_recovered_weights_give_what_their_float_graph_does_on_a_short_sentence(opening: Opening) -> None:
    original = opening.checkpoint.original
    assert original is not None
    values, tokens = original.values, tokens_of(YES, opening.voices)
    inputs = host_inputs(original.model, opening.checkpoint.path)
    names = {values.x: "x", values.har: "har", values.style: "decoder_style", values.conv_post: "spec_phase"}
    whole = open_session(extract(original.model, {name: name for name in inputs}, names))
    style = style_of(opening.voices.first, tokens, opening.voices)
    spoken = whole(dict(zip(inputs, (tokens, style, np.ones(1, np.float32)), strict=True)))
    x, har, decoder_style = (spoken[name] for name in ("x", "har", "decoder_style"))
    assert x.shape[-1] > 60
    assert snr_db(spoken["spec_phase"], run(opening.original, (x, har, decoder_style))) >= WEIGHTS_DB
