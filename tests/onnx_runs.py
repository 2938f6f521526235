"""Runs graphs in onnxruntime with graph optimisation off, and compares what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray

Array = NDArray[Any]


def as_proto(model: onnx.ModelProto | ir.Model) -> onnx.ModelProto:
    """`model` as protobuf."""
    return ir.to_proto(model) if isinstance(model, ir.Model) else model


def open_session(model: onnx.ModelProto | ir.Model) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """Opens `model` once; what it returns runs it on a feed and gives the outputs by name."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    data = as_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feed: dict(zip(names, session.run(names, dict(feed)), strict=True))


def run(model: onnx.ModelProto | ir.Model, feed: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of `model` by name."""
    return open_session(model)(feed)


def snr_db(reference: Array, measured: Array) -> float:
    """Signal-to-noise ratio of `measured`, in dB; inf where they are identical."""
    assert reference.shape == measured.shape
    wanted = reference.astype(np.float64)
    noise = float(np.sum((measured.astype(np.float64) - wanted) ** 2))
    return float(10 * np.log10(np.sum(wanted**2) / noise)) if noise else float("inf")
