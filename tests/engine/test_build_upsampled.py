"""The real toolkit on a transposed convolution and on its phases: what the layer table says of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from cost.model import modelled_ms, on_cpu
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from surgery.rewrite_transposed_conv import rewrite_transposed_conv
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.convolutions import feed_of

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""


def generator_stage() -> ir.Model:
    """A stage of 45 frames, an odd number, between two convolutions."""
    random = np.random.default_rng(7)
    weights = {
        "first": random.standard_normal((256, 256, 3)) / 28,
        "up": random.standard_normal((256, 128, 16)) / 23,
        "last": random.standard_normal((128, 128, 3)) / 20,
    }
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], "a", kernel_shape=[3], pads=[1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["b"], "b", alpha=0.1),
        helper.make_node("ConvTranspose", ["b", "up"], ["u"], "u", kernel_shape=[16], strides=[8], pads=[4, 4]),
        helper.make_node("Conv", ["u", "last"], ["y"], "y", kernel_shape=[3], pads=[1, 1]),
    ]
    stated = [constant(name, values) for name, values in weights.items()]
    return model(nodes, [tensor("x", [1, 256, 45])], [tensor("y", [1, 128, 360])], stated)


@pytest.mark.parametrize("target", ["rk3588"])
def test_build_costs_less_in_the_layer_table_when_the_phases_are_made(
    converter_python: Path, tmp_path: Path, target: str
) -> None:
    original = generator_stage()
    bound = rewrite_transposed_conv(target)
    feed = feed_of(original)
    wanted = run(original, feed)["y"]
    times, cpu = [], []
    for name, made in (("before", original), ("after", bound.rewrite(original).model)):
        folder = tmp_path / name
        folder.mkdir()
        build = built(made, feed, folder, converter_python, target)
        lines = list(clean_lines(build.lines.read_bytes()))
        assert not [line for line in lines if "REGTASK" in line]
        assert snr_db(wanted, np.asarray(build.simulated[0]["y"])) >= THRESHOLD_DB
        table = parse_layer_table(lines)
        assert table is not None
        layers = table.layers
        times.append(modelled_ms(layers))
        cpu.append([layer.name for layer in layers if on_cpu(layer)])
    assert times[1] < 0.75 * times[0]
    assert cpu[1] == cpu[0]
