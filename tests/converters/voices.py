"""What the tests of the voices share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from converters.piper.voice import Voice, open_voice
from tests.onnx_runs import Array, run
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import LATENT, MASK, voice_model, write_voice


def opened(folder: Path, recipe: Recipe | None = None) -> Voice:
    """A small voice, read back from `folder`."""
    return open_voice(write_voice(folder / "voice.onnx", recipe))


def whole_voice(recipe: Recipe, ids: list[int], scales: tuple[float, float, float]) -> dict[str, Array]:
    """`z`, `y_mask` and `output` of the voice as it was written, no code of ours in between."""
    model = voice_model(recipe)
    for name in (LATENT, MASK):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None, None]))
    feed: dict[str, Array] = {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array(scales, np.float32),
    }
    got = run(model, feed)
    return {"z": got[LATENT], "y_mask": got[MASK], "output": got["output"]}


def save(path: Path, model: onnx.ModelProto) -> Path:
    """Writes `model` to `path` without a JSON."""
    onnx.save(model, path)
    return path
