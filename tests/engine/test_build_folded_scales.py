"""The real toolkit on scales and shifts: what it folds itself, and what the passes take from an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from cost.model import modelled_ms
from logs.layer_table import LayerTable, parse_layer_table
from surgery.fold_scales import fold_scales
from surgery.fold_shifts import fold_shifts
from tests.engine.toolkit_runs import built
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.layer_graphs import conv, layers, near_one, node, noise, up

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

CHANNELS, STEPS = 32, 200


def generator() -> ir.Model:
    """As in a HiFi-GAN: transposed convolutions with a scale and a shift behind, and a mean of two branches between."""

    def drawn(*shape: int) -> Array:
        return noise(*shape) / np.float32(np.sqrt(np.prod(shape[1:])))

    square = (CHANNELS, CHANNELS)
    nodes = [
        conv("x w0", "a"), node("Mul", "a half", "h"),  # the compiler folds this one itself
        up("h wt", "c"), node("Mul", "c each", "d"), node("LeakyRelu", "d", "f", alpha=0.1),
        conv("f w1", "g"), node("Tanh", "g", "i"), conv("f w2", "j"), node("Tanh", "j", "k"),
        node("Add", "i k", "s"), node("Div", "s three", "m"), node("LeakyRelu", "m", "n", alpha=0.1),
        up("n wt", "o"), node("Add", "o t", "p"), node("LeakyRelu", "p", "q", alpha=0.1), conv("q w3", "y"),
    ]  # fmt: skip
    weights: dict[str, Any] = {f"w{number}": drawn(*square, 3) for number in range(4)}
    beside: dict[str, Any] = {"wt": drawn(*square, 4), "each": near_one(1, CHANNELS, 1), "t": noise(1, CHANNELS, 1)}
    return layers(*nodes, shape=(1, CHANNELS, STEPS), **weights, **beside)


def test_engine_has_no_scale_left_and_costs_less_when_the_passes_have_run(
    converter_python: Path, tmp_path: Path
) -> None:
    original = generator()
    scaled = fold_scales().rewrite(original)
    shifted = fold_shifts().rewrite(scaled.model)
    assert (scaled.hits, shifted.hits) == (3, 1)
    feed = {"x": np.random.default_rng(3).standard_normal((1, CHANNELS, STEPS)).astype(np.float32)}
    wanted = run(original, feed)["y"]
    tables: list[LayerTable] = []
    for name, model in (("before", original), ("after", shifted.model)):
        folder = tmp_path / name
        folder.mkdir()
        build = built(model, feed, folder, converter_python)
        assert snr_db(wanted, np.asarray(build.simulated[0]["y"])) >= THRESHOLD_DB
        table = parse_layer_table(build.lines.read_text(encoding="utf-8").splitlines())
        assert table is not None
        tables.append(table)
    before, after = ([layer.op for layer in table.layers] for table in tables)
    # The compiler takes the first of three scales into its Conv, and none of the others.
    assert (before.count("Mul"), after.count("Mul")) == (2, 0)
    assert (before.count("Add"), after.count("Add")) == (2, 1)  # what is left joins the branches
    assert modelled_ms(tables[1].layers) < modelled_ms(tables[0].layers)
