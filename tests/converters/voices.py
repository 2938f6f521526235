"""What the tests of the voices share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from converters.piper.voice import Voice, open_voice
from tests.onnx_runs import Array, run
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import seam_names, voice_model, write_voice

SPEAKER = LANGUAGE = 0
"""Who speaks in `whole_voice` where nobody is named."""


def opened(folder: Path, recipe: Recipe | None = None) -> Voice:
    """A small voice, read back from `folder`."""
    return open_voice(write_voice(folder / "voice.onnx", recipe))


def whole_voice(
    recipe: Recipe,
    ids: list[int],
    scales: tuple[float, float, float],
    *,
    speaker: int = SPEAKER,
    language: int = LANGUAGE,
    prosody: Array | None = None,
) -> dict[str, Array]:
    """`z`, `y_mask` and `output` of the voice as it was written, no code of ours in between.

    `speaker`, `language` and `prosody` ([1, ids, 3]; none is all zero) count where the voice has such an input.
    """
    model = voice_model(recipe)
    latent, mask = seam_names(recipe)
    for name in (latent, mask):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None, None]))
    feed: dict[str, Array] = {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array(scales, np.float32),
        "sid": np.array([speaker], np.int64),
        "lid": np.array([language], np.int64),
        "prosody_features": np.zeros((1, len(ids), 3), np.int64) if prosody is None else prosody,
    }
    got = run(model, {value.name: feed[value.name] for value in model.graph.input})
    return {"z": got[latent], "y_mask": got[mask], "output": got["output"]}


def save(path: Path, model: onnx.ModelProto) -> Path:
    """Writes `model` to `path` without a JSON."""
    onnx.save(model, path)
    return path
