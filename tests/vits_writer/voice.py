"""Small VITS voices as ONNX, with the node patterns that Piper's exporter leaves, and their JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.vits_writer.decoder import Conditions, decode, reverse_flow
from tests.vits_writer.duration import DurationInputs, durations
from tests.vits_writer.encoder import encode, expand
from tests.vits_writer.graph_writer import GraphWriter
from tests.vits_writer.model import assembled, exporter_names, finished, samples, seam_values, voice_inputs, writer_of
from tests.vits_writer.recipe import ALPHABET, Recipe

NOISE_SCALE, LENGTH_SCALE, NOISE_WIDTH = 0.667, 1.0, 0.8
LATENT, MASK = "/Add_output_0", "/frames/Cast_output_0"
"""Names of the values at the seam in the legacy exporter's dialect."""


def voice_model(recipe: Recipe | None = None) -> onnx.ModelProto:
    """The voice that `recipe` describes.

    Inputs in this order, as Piper and piper-plus name them: `input`, `input_lengths`, `scales`, `sid`, `lid`,
    `prosody_features`; outputs `output` and `durations`.
    """
    recipe = recipe or Recipe()
    return finished(_assembled_voice(recipe), recipe)


def seam_names(recipe: Recipe) -> tuple[str, str]:
    """What `voice_model(recipe)` calls the latent before the flow, and the frame mask."""
    names = exporter_names(_assembled_voice(recipe), recipe)
    return names.get(LATENT, LATENT), names.get(MASK, MASK)


def decoder_model(recipe: Recipe | None = None) -> onnx.ModelProto:
    """What lies behind the seam of that voice: `z` [1, C, frames] and `y_mask` [1, 1, frames] to `audio`.

    A voice of several speakers is decoded as one that has no condition; `streaming_pair`'s decoder reads it.
    """
    recipe = recipe or Recipe()
    w = writer_of(recipe)
    given = Conditions("y_mask" if recipe.mask else None, None)
    audio = decode(w, recipe, reverse_flow(w, recipe, "z", given), given)
    w.node("Unsqueeze", "/Unsqueeze_11", audio, w.integers(1))
    w.name_last("audio")
    return finished(assembled(w, recipe, seam_values(recipe), [samples(recipe, "audio")]), recipe)


@dataclass(frozen=True)
class EncoderHalf:
    """Names of what the decoder half reads, and of the durations [batch, 1, T] before they are rounded up."""

    latent: str
    mask: str
    condition: str | None
    durations: str


def write_encoder_half(w: GraphWriter, recipe: Recipe) -> EncoderHalf:
    """From the voice's inputs to the latent."""
    noise_scale, length_scale, noise_width = (
        w.node("Gather", f"/scales.{i}/Gather", "scales", w.scalar(i), axis=0) for i in range(3)
    )
    encoded = encode(w, recipe, "input", "input_lengths")
    condition = _condition(w, recipe)
    given = DurationInputs(
        length_scale,
        noise_width,
        condition,
        prosody="prosody_features" if recipe.prosody else None,
        language="lid" if recipe.languages > 1 else None,
    )
    predicted, frames = durations(w, recipe, encoded, given)
    mean, logs, mask = expand(w, encoded, frames)
    if recipe.noise:
        noise = w.node("Mul", "/Mul_5", w.normal_like("", mean), w.node("Exp", "/Exp_1", logs))
        z = w.node("Add", "/Add", mean, w.node("Mul", "/Mul_6", noise, noise_scale))
    else:
        z = w.node("Add", "/Add", mean, w.node("Exp", "/Exp_1", logs))
    return EncoderHalf(z, mask, condition, predicted)


def voice_json(recipe: Recipe | None = None) -> dict[str, Any]:
    """What Piper writes beside the voice."""
    recipe = recipe or Recipe()
    # piper-plus' keys; Piper has none for it.
    id_map = {f"language_{n}": n for n in range(recipe.languages)}
    languages = {"num_languages": recipe.languages, "language_id_map": id_map} if recipe.languages > 1 else {}
    return {
        "audio": {"sample_rate": recipe.sample_rate, "quality": "small"},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": NOISE_SCALE, "length_scale": LENGTH_SCALE, "noise_w": NOISE_WIDTH},
        "phoneme_type": "espeak",
        "phoneme_map": {},
        "phoneme_id_map": {symbol: [number] for number, symbol in enumerate(ALPHABET)},
        "num_symbols": recipe.symbols,
        "num_speakers": recipe.speakers,
        "speaker_id_map": {f"speaker_{n}": n for n in range(recipe.speakers)} if recipe.speakers > 1 else {},
        **languages,
    }


def write_voice(path: Path, recipe: Recipe | None = None, config: dict[str, Any] | None = None) -> Path:
    """Writes the voice to `path` and its JSON (or `config`) beside it; returns `path`."""
    onnx.save(voice_model(recipe), path)
    text = json.dumps(voice_json(recipe) if config is None else config, ensure_ascii=False)
    path.with_name(f"{path.name}.json").write_text(text, encoding="utf-8")
    return path


def _assembled_voice(recipe: Recipe) -> onnx.ModelProto:
    w = writer_of(recipe)
    half = write_encoder_half(w, recipe)
    predicted = ""
    if recipe.durations_output:
        predicted = w.node("Squeeze", "/Squeeze_durations", half.durations, w.integers(1))
    given = Conditions(half.mask if recipe.mask else None, half.condition)
    audio = decode(w, recipe, reverse_flow(w, recipe, half.latent, given), given)
    w.node("Unsqueeze", "/Unsqueeze_11", audio, w.integers(1))
    outputs = [samples(recipe, w.name_last("output"))]
    names = {}
    if predicted:
        names[predicted] = "durations"
        shape = ["batch_size", "phonemes"]
        outputs.append(helper.make_tensor_value_info(predicted, TensorProto.FLOAT, shape))
    return assembled(w, recipe, voice_inputs(recipe), outputs, names)


def _condition(w: GraphWriter, recipe: Recipe) -> str | None:
    """The embedding [batch, hidden, 1] of speaker and language; None where there is one of each."""
    found = []
    for name, index, count in (("emb_g", "sid", recipe.speakers), ("emb_lang", "lid", recipe.languages)):
        if count > 1:
            table = w.weight(f"{name}.weight", count, recipe.hidden, spread=1.0)
            row = w.node("Gather", f"/{name}/Gather", table, index)
            found.append(w.node("Unsqueeze", f"/{name}/Unsqueeze", row, w.integers(-1)))
    if len(found) > 1:
        return w.node("Add", "/Add_languages", *found)
    return found[0] if found else None
