"""The real toolkit on activations that are spelled out: one layer of each, and the convolution before it in that."""

from __future__ import annotations

from pathlib import Path

import pytest

from cost.model import on_cpu
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from surgery.preflight import preflight
from tests.engine.toolkit_runs import built
from tests.onnx_runs import run, snr_db
from tests.surgery.affine_graphs import affine_graph, node
from tests.surgery.one_operator import feed_of
from tests.surgery.spelled import KNOWN, SPELLED

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""


@pytest.mark.parametrize(("name", "layer"), KNOWN.items())
def test_an_activation_is_one_layer_when_all_passes_have_run(
    name: str, layer: str, converter_python: Path, tmp_path: Path
) -> None:
    nodes, constants = SPELLED[name]
    last = node("Conv", "y w", "z")
    original = affine_graph(*nodes, last, sizes=(1, 6, 1, 20), outputs=("z",), read_once=True, **constants)
    made = original
    for bound in preflight("rk3588"):
        made = bound.rewrite(made).model
    feed = feed_of(original)
    build = built(made, feed, tmp_path, converter_python)
    (simulated,) = build.simulated
    assert snr_db(run(original, feed)["z"], simulated["z"]) >= THRESHOLD_DB
    table = parse_layer_table(list(clean_lines(build.lines.read_bytes())))
    assert table is not None
    assert not any(on_cpu(one) for one in table.layers)
    assert layer in [one.op for one in table.layers]
