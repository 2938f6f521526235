"""The real toolkit on constants that its copies of another one would be called like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx import helper

from surgery.normalise_constant_names import normalise_constant_names
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

SHAPE = (1, 8, 1, 6)


def squashed(*scales: str) -> ir.Model:
    """The Sigmoid of x times constants, for each of `scales` in turn."""
    rng = np.random.default_rng(0)
    nodes = []
    for place, name in enumerate(scales):
        made = "y" if place == len(scales) - 1 else f"s{place}"
        nodes.append(helper.make_node("Mul", [f"s{place - 1}" if place else "x", name], [f"m{place}"], f"times{place}"))
        nodes.append(helper.make_node("Sigmoid", [f"m{place}"], [made], f"squash{place}"))
    weights = [constant(name, rng.standard_normal(SHAPE)) for name in sorted(set(scales))]
    return ir.from_proto(proto(nodes, [tensor("x", SHAPE)], [tensor("y", SHAPE)], weights))


def test_simulator_reads_each_constant_when_one_of_several_readers_is_numbered_like_another(
    converter_python: Path, tmp_path: Path
) -> None:
    original = squashed("k", "k", "k", "k_2", "k_1")
    feed = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)}
    named, other = tmp_path / "renamed", tmp_path / "other"
    named.mkdir()
    other.mkdir()
    model = normalise_constant_names().rewrite(original).model
    done = built(model, feed, named, converter_python)
    wanted = run(original, feed)["y"]
    assert snr_db(wanted, done.simulated[0]["y"]) >= THRESHOLD_DB
    as_it_was = built(original, feed, other, converter_python)
    assert snr_db(wanted, as_it_was.simulated[0]["y"]) < THRESHOLD_DB  # else the pass is needed no more
