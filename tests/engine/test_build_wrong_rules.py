"""The real toolkit without the fuse rules that make other numbers of a graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""


def test_simulator_reads_each_table_when_two_are_indexed_by_one_input(converter_python: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Gather", ["letters", "ids"], ["a"], "letter"),
        helper.make_node("Gather", ["tones", "ids"], ["b"], "tone"),
        helper.make_node("Gather", ["stresses", "ids"], ["c"], "stress"),
        helper.make_node("Concat", ["a", "b", "c"], ["y"], "all", axis=-1),
    ]
    tables = [
        constant(name, rng.standard_normal((rows, 8)))
        for name, rows in (("letters", 50), ("tones", 20), ("stresses", 20))
    ]
    graph = proto(nodes, [tensor("ids", [1, 6], TensorProto.INT64)], [tensor("y", [1, 6, 24])], tables)
    model = ir.from_proto(graph)
    feed = {"ids": rng.integers(0, 20, (1, 6))}
    done = built(model, feed, tmp_path, converter_python)
    assert snr_db(run(model, feed)["y"], done.simulated[0]["y"]) >= THRESHOLD_DB
    assert done.disabled_rules == ()  # those are what this graph asked for
