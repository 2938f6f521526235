"""The real toolkit on a flow whose channel flips are folded: nothing of it is left to the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from cost.model import modelled_ms, on_cpu
from engine.build import BuildResult
from logs.layer_table import parse_layer_table
from surgery.fold_channel_flips import fold_channel_flips
from surgery.fold_constants import fold_constants
from surgery.normalise_static_inputs import normalise_static_inputs
from tests.engine.toolkit_runs import built
from tests.onnx_runs import run, snr_db
from tests.surgery.graphs import decoder, decoder_feed, static_shapes
from tests.vits_writer.recipe import Recipe

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

FRAMES = 32
"""A multiple of 8, else rk3588 has the input's own Reshape done by the CPU."""

RECIPE = Recipe(flows=3, latent=32, hidden=32, decoder=32)


def placed(build: BuildResult) -> tuple[list[str], float]:
    """The operators that the CPU does, and the modelled time."""
    table = parse_layer_table(build.lines.read_text(encoding="utf-8").splitlines())
    assert table is not None
    return sorted(layer.op for layer in table.layers if on_cpu(layer)), modelled_ms(table.layers)


@pytest.mark.parametrize("target", ["rk3588"])
def test_build_has_no_layer_on_the_cpu_when_the_flips_are_folded(
    converter_python: Path, tmp_path: Path, target: str
) -> None:
    original = decoder(RECIPE)
    for bound in (normalise_static_inputs(static_shapes(RECIPE, FRAMES)), fold_constants()):
        original = bound.rewrite(original).model
    folded = fold_channel_flips().rewrite(original)
    assert folded.hits == RECIPE.flows
    feed = decoder_feed(RECIPE, FRAMES)
    wanted = run(original, feed)["audio"]
    times = []
    for name, model, slices in (("before", original, ["Slice"] * RECIPE.flows), ("after", folded.model, [])):
        folder = tmp_path / name
        folder.mkdir()
        build = built(ir.to_proto(model), feed, folder, converter_python, target)
        (simulated,) = build.simulated
        assert snr_db(wanted, np.asarray(simulated["audio"])) >= THRESHOLD_DB
        operators, ms = placed(build)
        assert operators == slices
        times.append(ms)
    assert times[1] < times[0]
