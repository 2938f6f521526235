"""What the tests of the duration encoder share: small voices, and what they compute on the way, no code of ours in
between."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, helper

from tests.onnx_runs import Array, run
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import LATENT, MASK, voice_model

STATS, CONDITIONING, DURATIONS = "/enc_p/proj/Conv_output_0", "/dp/proj/Conv_output_0", "/Ceil_output_0"
"""Names at the seam, as the writer writes them."""

ATTENTIVE = Recipe(attention=True, duration_flows=True, layers=1)
"""A voice with VITS's own text encoder and stochastic durations, of one layer."""

IDS = [1, 0, 20, 0, 14, 0, 30, 0, 33, 0, 2]

AT_SEAM = {"stats": STATS, "conditioning": CONDITIONING, "durations": DURATIONS, "z": LATENT, "y_mask": MASK}


def tokens(ids: list[int] | None = None, width: int | None = None) -> dict[str, Array]:
    """Ids and their count, padded with zeros to `width`."""
    ids = IDS if ids is None else ids
    padded = [*ids, *[0] * ((width or len(ids)) - len(ids))]
    return {"input": np.array([padded], np.int64), "input_lengths": np.array([len(ids)], np.int64)}


def settings(scales: tuple[float, float, float]) -> dict[str, Array]:
    return {"scales": np.array(scales, np.float32)}


def computed(recipe: Recipe, feed: Mapping[str, Array]) -> dict[str, Array]:
    """What the voice of `recipe`, as it was written, has at the seam and at that of the decoder."""
    model = voice_model(recipe)
    for name in AT_SEAM.values():
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    got = run(model, feed)
    return {ours: got[theirs] for ours, theirs in AT_SEAM.items()}
