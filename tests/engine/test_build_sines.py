"""The real toolkit on Snake whose sine was rewritten: on the NPU, finite, and near the original."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from cost.model import on_cpu
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from surgery.rewrite_sines import rewrite_sines
from surgery.rewrite_zeroed_absolutes import rewrite_zeroed_absolutes
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db

CHANNELS, STEPS = 40, 256

ALPHA = np.geomspace(9.5e-5, 2.0, CHANNELS).reshape(1, CHANNELS, 1)
"""The smallest is one of Kokoro's, whose 1 / alpha made a whole window NaN (toolkit-facts, Sine)."""

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""


@pytest.mark.parametrize(("form", "target"), [("triangle", "rk3588"), ("fine", "rk3588"), ("fine", "rk3576")])
def test_build_has_no_sine_on_the_cpu_when_it_was_rewritten(
    converter_python: Path, tmp_path: Path, form: str, target: str
) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "same"], ["u"], "before", kernel_shape=[1]),
        helper.make_node("Mul", ["alpha", "u"], ["au"], "scale"),
        helper.make_node("Sin", ["au"], ["s"], "sine"),
        helper.make_node("Pow", ["s", "two"], ["q"], "square"),
        helper.make_node("Mul", ["part", "q"], ["p"], "unscale"),
        helper.make_node("Add", ["u", "p"], ["v"], "sum"),
        helper.make_node("Conv", ["v", "same"], ["y"], "after", kernel_shape=[1]),
    ]
    shape = [1, CHANNELS, STEPS]
    weights = [
        constant("same", np.eye(CHANNELS)[:, :, None]),
        constant("alpha", ALPHA),
        constant("part", 1 / ALPHA),
        constant("two", 2.0),
    ]
    original = model(nodes, [tensor("x", shape)], [tensor("y", shape)], weights)
    done = rewrite_sines(form, target=target).rewrite(original)
    assert done.hits == 1
    feed = {"x": (np.random.default_rng(4).standard_normal(shape) * 3).astype(np.float32)}
    build = built(done.model, feed, tmp_path, converter_python, target)
    text = build.lines.read_bytes()
    table = parse_layer_table(clean_lines(text))
    assert table is not None
    assert not [layer.name for layer in table.layers if on_cpu(layer)]
    assert b"REGTASK" not in text
    got = np.asarray(build.simulated[0]["y"])
    assert np.all(np.isfinite(got))
    assert snr_db(run(original, feed)["y"], got) >= THRESHOLD_DB


@pytest.mark.parametrize(("form", "squared"), [("triangle", True), ("triangle", False), ("clip", True)])
def test_engine_has_a_sine_of_bounded_data(converter_python: Path, tmp_path: Path, form: str, squared: bool) -> None:
    """The toolkit knows what a Clip bounds, and makes 0 of the absolute value of what cannot be positive."""
    alpha = np.linspace(-2.0, 2.0, CHANNELS).reshape(1, CHANNELS, 1)
    nodes = [
        helper.make_node("Clip", ["x", "zero", "one"], ["u"], "before"),
        helper.make_node("Mul", ["alpha", "u"], ["au"], "scale"),
        helper.make_node("Sin", ["au"], ["s"], "sine"),
        helper.make_node("Mul", ["s", "s"] if squared else ["s", "two"], ["q"], "behind"),
        helper.make_node("Conv", ["q", "same"], ["y"], "after", kernel_shape=[1]),
    ]
    shape = [1, CHANNELS, STEPS]
    numbers = {"same": np.eye(CHANNELS)[:, :, None], "alpha": alpha, "zero": 0.0, "one": 1.0, "two": 2.0}
    weights = [constant(name, values) for name, values in numbers.items() if name != "two" or not squared]
    original = model(nodes, [tensor("x", shape)], [tensor("y", shape)], weights)
    done = rewrite_sines(form, 8.0, target="rk3588").rewrite(original)
    mended = rewrite_zeroed_absolutes().rewrite(done.model)
    assert (done.hits, mended.hits > 0) == (1, form == "triangle")
    feed = {"x": (np.random.default_rng(4).standard_normal(shape) * 3).astype(np.float32)}
    build = built(mended.model, feed, tmp_path, converter_python)
    assert snr_db(run(original, feed)["y"], np.asarray(build.simulated[0]["y"])) >= THRESHOLD_DB
