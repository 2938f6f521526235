"""Tiny graphs, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


def save_graph(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Array],
    integers: Sequence[str] = (),
) -> Path:
    """Writes the graph of `nodes`; inputs and outputs by name and shape, float32 but for the int64 `integers`."""

    def value(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.INT64 if name in integers else TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        list(nodes),
        "tiny",
        [value(*item) for item in inputs.items()],
        [value(*item) for item in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def conv_graph(path: Path) -> Path:
    """A convolution over x [1, 3, 8, 12] to y [1, 4, 8, 12]: no two dimensions are equal, so a wrong layout shows."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    return save_graph(path, [node], {"x": (1, 3, 8, 12)}, {"y": (1, 4, 8, 12)}, {"w": random(4, 3, 3, 3)})


def random(*shape: int, seed: int = 0) -> Array:
    """Normal float32 values of `shape`."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_feed(path: Path, seed: int = 1) -> dict[str, Array]:
    """A feed for every input of the graph at `path`; integers are below 7."""
    feed: dict[str, Array] = {}
    for index, value in enumerate(onnx.load(path).graph.input):
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        integer = value.type.tensor_type.elem_type == TensorProto.INT64
        generator = np.random.default_rng(seed + index)
        feed[value.name] = generator.integers(0, 7, shape) if integer else random(*shape, seed=seed + index)
    return feed


def reference(path: Path, feed: Mapping[str, Array]) -> dict[str, Array]:
    """What onnxruntime computes, by output name, without its graph optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, dict(feed)), strict=True))


def snr_db(got: Array, wanted: Array) -> float:
    """Signal to noise ratio of `got` against `wanted`, in dB."""
    assert got.shape == wanted.shape
    signal, noise = np.square(wanted.astype(np.float64)).sum(), np.square(got.astype(np.float64) - wanted).sum()
    return float(10 * np.log10(signal / noise)) if noise else float("inf")
