"""The real toolkit on rows of affine steps: what it merges, what fuses with an activation, and that the values stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx import helper

from cost.model import modelled_ms, on_cpu
from logs.layer_table import Layer, parse_layer_table
from logs.lines import clean_lines
from surgery.fuse_affine_steps import fuse_affine_steps
from surgery.rewrite_affine_as_depthwise import rewrite_affine_as_depthwise
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

RNG = np.random.default_rng(7)

C, STEPS, ROWS = 64, 600, 3


def rows() -> ir.Model:
    """Three times s * (x + t) and a LeakyRelu, between two convolutions."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], "first", pads=[1, 1])]
    nodes.append(helper.make_node("Tanh", ["h"], ["y0"], "tanh"))
    for row in range(ROWS):
        nodes.append(helper.make_node("Add", [f"y{row}", f"t{row}"], [f"a{row}"], f"add{row}"))
        nodes.append(helper.make_node("Mul", [f"s{row}", f"a{row}"], [f"b{row}"], f"mul{row}"))
        nodes.append(helper.make_node("LeakyRelu", [f"b{row}"], [f"y{row + 1}"], f"leaky{row}", alpha=0.1))
    nodes.append(helper.make_node("Conv", [f"y{ROWS}", "w"], ["y"], "last", pads=[1, 1]))
    weights = {f"{name}{row}": RNG.uniform(0.5, 2.0, (1, C, 1)) for name in "st" for row in range(ROWS)}
    weights["w"] = RNG.standard_normal((C, C, 3)) / np.sqrt(3 * C)
    sizes = [1, C, STEPS]
    constants = [constant(name, values) for name, values in weights.items()]
    return model(nodes, [tensor("x", sizes)], [tensor("y", sizes)], constants)


def layers(made: ir.Model, original: ir.Model, folder: Path, converter_python: Path) -> tuple[Layer, ...]:
    """The layer table of `made`, the values of which are those of `original` in the simulator."""
    folder.mkdir()
    feed = {"x": RNG.standard_normal((1, C, STEPS)).astype(np.float32)}
    build = built(made, feed, folder, converter_python)
    (simulated,) = build.simulated
    assert snr_db(run(original, feed)["y"], np.asarray(simulated["y"])) >= THRESHOLD_DB
    table = parse_layer_table(list(clean_lines(build.lines.read_bytes())))
    assert table is not None
    assert not any(on_cpu(layer) for layer in table.layers)
    return tuple(table.layers)


def test_each_row_is_one_layer_less_and_then_one_in_all(converter_python: Path, tmp_path: Path) -> None:
    original = rows()
    fused = fuse_affine_steps().rewrite(original)
    convolved = rewrite_affine_as_depthwise().rewrite(fused.model)
    assert (fused.hits, convolved.hits) == (ROWS, ROWS)
    tables = [
        layers(made, original, tmp_path / name, converter_python)
        for name, made in (("given", original), ("fused", fused.model), ("convolved", convolved.model))
    ]
    assert [len(tables[0]) - len(table) for table in tables] == [0, ROWS, 2 * ROWS]
    assert sum(layer.op == "BatchNormalization" for layer in tables[1]) == ROWS
    assert sum(layer.op == "ConvLeakyRelu" for layer in tables[2]) == ROWS
    costs = [modelled_ms(table) for table in tables]
    assert costs[0] > costs[1] > costs[2]


def test_channel_is_zero_when_it_is_an_absolute_value_of_what_cannot_be_positive(
    converter_python: Path, tmp_path: Path
) -> None:
    """Why `would_be_zeroed` is asked: the first channel is |-relu(x) - 1|, at least 1, and the engine gives 0."""
    sizes = [1, 8, 40]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "w", "b"], ["c"], "affine", group=8),
        helper.make_node("Abs", ["c"], ["a"], "abs"),
        helper.make_node("Conv", ["a", "same"], ["y"], "last"),
    ]
    signs = np.where(np.arange(8) == 0, -1.0, 1.0)
    weights = {"w": signs[:, None, None], "b": signs, "same": np.eye(8)[..., None]}
    constants = [constant(name, values) for name, values in weights.items()]
    made = model(nodes, [tensor("x", sizes)], [tensor("y", sizes)], constants)
    feed = {"x": RNG.standard_normal(sizes).astype(np.float32)}
    (simulated,) = built(made, feed, tmp_path, converter_python).simulated
    given = np.asarray(simulated["y"])
    assert not given[0, 0].any()
    assert snr_db(run(made, feed)["y"][0, 1:], given[0, 1:]) >= THRESHOLD_DB
