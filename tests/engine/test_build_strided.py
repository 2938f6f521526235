"""The real toolkit on what the passes make of strides, kernels, dilations and pools that overflow its fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from gates.graphs import with_shapes
from gates.hardware_fields import hardware_fields
from surgery.rewrite_long_pool import rewrite_long_pool
from surgery.rewrite_long_transposed_conv import rewrite_long_transposed_conv
from surgery.rewrite_strided_average_pool import rewrite_strided_average_pool
from surgery.rewrite_strided_conv import rewrite_strided_conv
from surgery.rewrite_wide_dilation import rewrite_wide_dilation
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

RNG = np.random.default_rng(15)

PASSES = (
    rewrite_strided_average_pool(),
    rewrite_strided_conv(),
    rewrite_long_transposed_conv(),
    rewrite_wide_dilation(),
    rewrite_long_pool(),
)

INPUTS = {"a": [1, 18, 1800], "c": [1, 8, 64], "d": [1, 8, 4096], "f": [1, 3, 60, 90], "g": [1, 4, 16384]}

OVERFLOWING_SIZES = 7
"""Of six nodes, one of which has two; the wide dilation is left to the log, which calls its field unproven."""


def overflowing() -> onnx.ModelProto:
    """One of each in parallel, every one of which overflows a field of every target."""
    nodes = [
        helper.make_node("Conv", ["a", "wa"], ["ya"], "downs", strides=[15], kernel_shape=[30], pads=[7, 7]),
        helper.make_node("Conv", ["a", "wa"], ["yb"], "odd", strides=[11], kernel_shape=[30], pads=[0, 3]),
        helper.make_node("ConvTranspose", ["c", "wc"], ["yc"], "up", strides=[2], kernel_shape=[40], pads=[19, 19]),
        helper.make_node("Conv", ["d", "wd"], ["yd"], "wide", dilations=[64], kernel_shape=[3], pads=[64, 64]),
        helper.make_node("AveragePool", ["a"], ["ye"], "mean", strides=[60], kernel_shape=[60], pads=[0, 0]),
        helper.make_node("Conv", ["f", "wf"], ["yf"], "patches", strides=[9, 18], pads=[1, 2, 1, 2]),
        helper.make_node("MaxPool", ["g"], ["yg"], "halves", strides=[2], kernel_shape=[2]),
    ]
    outputs = {"a": [119, 64], "b": [162, 64], "c": [128, 4], "d": [4096, 8], "e": [30, 18], "g": [8192, 4]}
    weights = {"wa": (64, 18, 30), "wc": (8, 4, 40), "wd": (8, 8, 3), "wf": (8, 3, 4, 20)}
    return proto(
        nodes,
        [tensor(name, shape) for name, shape in INPUTS.items()],
        [
            *(tensor(f"y{name}", [1, channels, steps]) for name, (steps, channels) in outputs.items()),
            tensor("yf", [1, 8, 7, 5]),
        ],
        [constant(name, RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))) for name, shape in weights.items()],
    )


@pytest.mark.parametrize("target", ["rk3588", "rk3576"])
def test_build_logs_no_overflow_when_the_passes_have_run(converter_python: Path, tmp_path: Path, target: str) -> None:
    original = overflowing()
    model = ir.from_proto(original)
    assert hardware_fields(with_shapes(model), target).measured == OVERFLOWING_SIZES
    for bound in PASSES:
        done = bound.rewrite(model)
        assert (done.hits > 0, done.refused) == (True, ())
        model = done.model
    assert hardware_fields(with_shapes(model), target).measured == 0
    feed = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in INPUTS.items()}
    build = built(model, feed, tmp_path, converter_python, target)
    assert "REGTASK" not in build.lines.read_text(encoding="utf-8")
    (simulated,) = build.simulated
    for name, wanted in run(original, feed).items():
        assert snr_db(wanted, np.asarray(simulated[name])) >= THRESHOLD_DB
