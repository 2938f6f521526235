"""Ours against the ONNX that a checkpoint's weights were recovered from: the generator, and the host half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.kokoro import evidence
from converters.kokoro.checkpoint import Original
from converters.kokoro.evidence import feed_of
from converters.kokoro.opening import Opening
from converters.kokoro.utterances import WEATHER, speak
from converters.kokoro.voices import style_of, tokens_of
from converters.stages import Equality
from models.kokoro.generator_graph import HARMONICS, LATENT, SPECTROGRAM, STYLE
from models.kokoro.runs import run
from surgery.graph import extract


def source_equalities(opening: Opening) -> tuple[Equality, ...]:
    """Against the ONNX that the weights were recovered from, where there is one."""
    original: Original | None = opening.checkpoint.original
    if original is None:
        return ()
    values, sentence = original.values, opening.sentence
    inputs = host_inputs(original.model, opening.file.path)
    whole = opening.open_session(extract(original.model, {name: name for name in inputs}, {values.x: LATENT}))
    voice = opening.voices.first
    tokens = tokens_of(WEATHER, opening.voices)
    fed = (tokens, style_of(voice, tokens, opening.voices), np.ones(1, np.float32))
    latent = whole(dict(zip(inputs, fed, strict=True)))
    spoken = speak(opening.speaking, opening.voices, opening.checkpoint.config, "", voice, WEATHER)
    part = extract(
        original.model,
        {values.x: LATENT, values.har: HARMONICS, values.style: STYLE},
        {values.conv_post: SPECTROGRAM},
    )
    decoded = opening.open_session(part)(feed_of(sentence))
    return (
        evidence.equality(
            "fp32.weights",
            np.asarray(decoded[SPECTROGRAM], np.float32),
            run(opening.original, sentence.seam),
            evidence.GRAPH_DB,
            "the generator on the recovered weights against the ONNX they are from, its weights made float",
        ),
        Equality(
            "host.latent",
            {LATENT: latent[LATENT]},
            {LATENT: spoken.x},
            evidence.HOST_DB,
            "the latent that the host half makes of a sentence, against that of the ONNX, its weights made float",
        ),
    )


def host_inputs(model: ir.Model, path: Path) -> tuple[str, str, str]:
    """The names of a whole Kokoro's tokens, style and speed.

    Raises:
        Refusal: it takes something else.
    """
    floats = [value for value in model.graph.inputs if value.dtype == ir.DataType.FLOAT]
    by_rank = {len(value.shape or ()): str(value.name) for value in floats}
    tokens = [str(value.name) for value in model.graph.inputs if value.dtype == ir.DataType.INT64]
    if len(model.graph.inputs) != 3 or len(tokens) != 1 or not {1, 2} <= by_rank.keys():
        names = ", ".join(str(value.name) for value in model.graph.inputs)
        raise Refusal(f"{path}: tokens, a style [1, 256] and a speed [1] are a Kokoro's inputs, and it has {names}.")
    return tokens[0], by_rank[2], by_rank[1]
