"""Small VITS voices as ONNX, with the node patterns that Piper's exporter leaves, and their JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.vits_writer.decoder import Conditions, decode, reverse_flow
from tests.vits_writer.encoder import durations, encode, expand
from tests.vits_writer.graph_writer import GraphWriter
from tests.vits_writer.recipe import ALPHABET, Recipe

NOISE_SCALE, LENGTH_SCALE, NOISE_WIDTH = 0.667, 1.0, 0.8
LATENT, MASK = "/Add_output_0", "/frames/Cast_output_0"
"""Names of the values at the seam, as written here."""


def voice_model(recipe: Recipe | None = None) -> onnx.ModelProto:
    """The voice that `recipe` describes."""
    recipe = recipe or Recipe()
    w = GraphWriter(recipe.seed, opset=recipe.model_opset, dynamo=recipe.exporter == "dynamo")
    noise_scale, length_scale, noise_width = (
        w.node("Gather", f"/scales.{i}/Gather", "scales", w.scalar(i), axis=0) for i in range(3)
    )
    encoded = encode(w, recipe, "input", "input_lengths")
    speaker = _speaker(w, recipe) if recipe.speakers > 1 else None
    frames = durations(w, recipe, encoded, length_scale, noise_width, speaker)
    mean, logs, mask = expand(w, encoded, frames)
    if recipe.noise:
        noise = w.node("Mul", "/Mul_5", w.normal_like("", mean), w.node("Exp", "/Exp_1", logs))
        z = w.node("Add", "/Add", mean, w.node("Mul", "/Mul_6", noise, noise_scale))
    else:
        z = w.node("Add", "/Add", mean, w.node("Exp", "/Exp_1", logs))
    given = Conditions(mask if recipe.mask else None, speaker)
    audio = decode(w, recipe, reverse_flow(w, recipe, z, given), given)
    w.node("Unsqueeze", "/Unsqueeze_11", audio, w.integers(1))
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, ["batch_size", "phonemes"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, ["batch_size"]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    if recipe.speakers > 1:
        inputs.append(helper.make_tensor_value_info("sid", TensorProto.INT64, ["batch_size"]))
    return _finished(w, recipe, inputs, "output")


def decoder_model(recipe: Recipe | None = None) -> onnx.ModelProto:
    """What lies behind the seam of that voice: `z` [1, C, frames] and `y_mask` [1, 1, frames] to `audio`."""
    recipe = recipe or Recipe()
    w = GraphWriter(recipe.seed, opset=recipe.model_opset, dynamo=recipe.exporter == "dynamo")
    given = Conditions("y_mask" if recipe.mask else None, None)
    audio = decode(w, recipe, reverse_flow(w, recipe, "z", given), given)
    w.node("Unsqueeze", "/Unsqueeze_11", audio, w.integers(1))
    inputs = [
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, recipe.latent, "frames"]),
        helper.make_tensor_value_info("y_mask", TensorProto.FLOAT, [1, 1, "frames"]),
    ]
    return _finished(w, recipe, inputs, "audio")


def voice_json(recipe: Recipe | None = None) -> dict[str, Any]:
    """What Piper writes beside the voice."""
    recipe = recipe or Recipe()
    return {
        "audio": {"sample_rate": recipe.sample_rate, "quality": "small"},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": NOISE_SCALE, "length_scale": LENGTH_SCALE, "noise_w": NOISE_WIDTH},
        "phoneme_type": "espeak",
        "phoneme_map": {},
        "phoneme_id_map": {symbol: [number] for number, symbol in enumerate(ALPHABET)},
        "num_symbols": recipe.symbols,
        "num_speakers": recipe.speakers,
        "speaker_id_map": {},
    }


def write_voice(path: Path, recipe: Recipe | None = None, config: dict[str, Any] | None = None) -> Path:
    """Writes the voice to `path` and its JSON (or `config`) beside it; returns `path`."""
    onnx.save(voice_model(recipe), path)
    text = json.dumps(voice_json(recipe) if config is None else config, ensure_ascii=False)
    path.with_name(f"{path.name}.json").write_text(text, encoding="utf-8")
    return path


def _speaker(w: GraphWriter, recipe: Recipe) -> str:
    table = w.weight("emb_g.weight", recipe.speakers, recipe.hidden, spread=1.0)
    return w.node("Unsqueeze", "/emb_g/Unsqueeze", w.node("Gather", "/emb_g/Gather", table, "sid"), w.integers(-1))


def _finished(w: GraphWriter, recipe: Recipe, inputs: list[onnx.ValueInfoProto], output: str) -> onnx.ModelProto:
    samples = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch_size", "time", 1, "samples"])
    opsets = [helper.make_opsetid("", recipe.model_opset)]
    w.name_last(output)
    model = helper.make_model(
        w.graph("torch_jit", inputs, [samples]), opset_imports=opsets, ir_version=8, producer_name="pytorch"
    )
    onnx.checker.check_model(model, full_check=True)
    return model
