"""Feeds of small voices, and what else than the audio their tests look at."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.onnx_runs import Array
from tests.vits_writer.recipe import Recipe

SCALES = (0.667, 1.0, 0.8)


def some_ids(count: int) -> Array:
    """Phoneme ids [count]."""
    return np.random.default_rng(count).integers(0, Recipe().symbols, count)


def feed_of(
    model: onnx.ModelProto, ids: Array, real: int | None = None, scales: tuple[float, float, float] = SCALES
) -> dict[str, Array]:
    """The inputs that `model` has, for `ids` [T] of which the first `real` count; speaker 1, language 0."""
    everything: dict[str, Array] = {
        "input": ids[None],
        "input_lengths": np.array([len(ids) if real is None else real], np.int64),
        "scales": np.array(scales, np.float32),
        "sid": np.array([1], np.int64),
        "lid": np.array([0], np.int64),
        "prosody_features": np.random.default_rng(1).integers(-4, 9, (1, len(ids), 3)),
    }
    return {value.name: everything[value.name] for value in model.graph.input}


def seen_at(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """The same graph with the values `names` as its outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return copy


def reader_of(model: onnx.ModelProto, weight: str) -> str:
    """The output of the node that reads `weight`."""
    return str(next(node.output[0] for node in model.graph.node if weight in node.input))
