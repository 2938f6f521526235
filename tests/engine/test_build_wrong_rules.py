"""The real toolkit without the fuse rules that make other numbers of a graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx import ModelProto, TensorProto, helper

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


ROWS = 16
"""Of x and, where a test says so, also its depth."""

COLUMNS = 24


def product_times_constants(depth: int, shape: tuple[int, ...]) -> ModelProto:
    """x[ROWS, depth] by constants, times other constants of `shape`."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "product"),
        helper.make_node("Mul", ["product", "c"], ["y"], "times"),
    ]
    constants = [constant("w", rng.standard_normal((depth, COLUMNS))), constant("c", rng.standard_normal(shape))]
    return proto(nodes, [tensor("x", [ROWS, depth])], [tensor("y", [ROWS, COLUMNS])], constants)


@pytest.mark.parametrize(
    ("depth", "shape"),
    [
        pytest.param(ROWS, (ROWS, COLUMNS), id="as many rows as the depth"),  # built without a word: -3 dB
        pytest.param(ROWS, (ROWS, 1), id="one number a row"),  # the same
        pytest.param(8, (ROWS, COLUMNS), id="another depth"),  # crashed in the rule, and was done again without it
        pytest.param(1, (ROWS, COLUMNS), id="a depth of one"),  # crashed later, and no rule was to blame
        pytest.param(ROWS, (COLUMNS,), id="one number a column"),  # was right
    ],
)
def test_simulator_multiplies_each_row_of_a_product_by_its_own_constants(
    depth: int, shape: tuple[int, ...], converter_python: Path, tmp_path: Path
) -> None:
    model = product_times_constants(depth, shape)
    feed = {"x": np.random.default_rng(1).standard_normal((ROWS, depth)).astype(np.float32)}
    done = built(model, feed, tmp_path, converter_python)
    assert snr_db(run(model, feed)["y"], done.simulated[0]["y"]) >= THRESHOLD_DB
    assert done.disabled_rules == ()
    assert not (tmp_path / "build.first.log").exists()
