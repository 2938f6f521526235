"""The real toolkit on absolute values of channels that cannot be positive: wrong as given, right once rewritten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from surgery.rewrite_zeroed_absolutes import rewrite_zeroed_absolutes
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

SCALES, SHIFTS = (-1.0, -0.5, 0.0, 0.5, 1.0), (-4.0, -1.0, 0.0, 1.0, 4.0)
PAIRS = [(scale, shift) for scale in SCALES for shift in SHIFTS]
C, STEPS = len(PAIRS), 40


def graph() -> ir.Model:
    """Each of `PAIRS` as a channel: a convolution behind a Relu, then a normalisation behind a Clip."""
    scale, shift = np.array(PAIRS).T
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "w", "shift"], ["c"], "layer", group=C),
        helper.make_node("Abs", ["c"], ["a"], "absolute"),
        helper.make_node("Conv", ["a", "same"], ["d"], "between"),
        helper.make_node("Clip", ["d", "zero", "three"], ["e"], "clip"),
        helper.make_node("BatchNormalization", ["e", "scale", "shift", "none", "one"], ["f"], "norm", epsilon=0.0),
        helper.make_node("LeakyRelu", ["f"], ["g"], "leaky", alpha=-0.5),
        helper.make_node("Conv", ["g", "same"], ["y"], "last"),
    ]
    weights = {"w": scale[:, None, None], "scale": scale, "shift": shift, "same": np.eye(C)[..., None]}
    weights |= {"none": np.zeros(C), "one": np.ones(C)}
    constants = [constant(name, values) for name, values in weights.items()]
    constants += [constant("zero", 0.0), constant("three", 3.0)]
    return model(nodes, [tensor("x", [1, C, STEPS])], [tensor("y", [1, C, STEPS])], constants)


@pytest.mark.parametrize("target", ["rk3588", "rk3566"])
def test_engine_is_right_once_its_absolutes_are_rewritten(converter_python: Path, tmp_path: Path, target: str) -> None:
    original = graph()
    done = rewrite_zeroed_absolutes().rewrite(original)
    assert done.hits == 2
    feed = {"x": np.random.default_rng(1).standard_normal((1, C, STEPS)).astype(np.float32)}
    wanted = run(original, feed)["y"]
    right = []
    for name, made in (("given", original), ("rewritten", done.model))[target == "rk3566" :]:
        (tmp_path / name).mkdir()
        build = built(made, feed, tmp_path / name, converter_python, target)
        right.append(snr_db(wanted, np.asarray(build.simulated[0]["y"])) >= THRESHOLD_DB)
    assert right == [False, True][target == "rk3566" :]
    table = parse_layer_table(list(clean_lines(build.lines.read_bytes())))
    assert table is not None
    assert "ConvLeakyRelu" in {layer.op for layer in table.layers}  # the factors are in the convolution's weights
