"""A branch makes each of its outputs itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.branch_outputs import own_branch_outputs
from surgery.scopes import nested_graphs
from tests.gates.small_graphs import model
from tests.onnx_runs import run
from tests.surgery.branches import FAILS, HOLDS, OUT, C, K, X, Y, branch, if_node, one
from tests.surgery.graphs import check, serialised

FEED = {"x": np.array([[0.5, -1.25, 2, -3]], np.float32)}


def passing(condition: str, *outputs: str) -> ir.Model:
    """An If whose one branch puts `outputs` out, which are values of the graph around it."""
    names = ["i", "j"][: len(outputs)]
    other = branch([], []) if not outputs else one("Exp", ["c"], "e")
    if len(outputs) == 2:
        other.output.add().CopyFrom(other.output[0])
    nodes = [C, if_node(condition, branch([], outputs), other, names), OUT]
    return model(nodes, [X], [Y], [HOLDS, FAILS, K])


@pytest.mark.parametrize(
    ("source", "wanted"), [("c", -np.tanh(FEED["x"])), ("x", -FEED["x"]), ("k", [[-0.5, -2, -3, -4]])]
)
def test_own_branch_outputs_adds_an_identity_when_a_branch_puts_out_a_value_from_outside(
    source: str, wanted: Any
) -> None:
    made = passing("holds", source)
    assert own_branch_outputs(made) == 1
    check(made)
    np.testing.assert_allclose(run(made, FEED)["y"], wanted, rtol=1e-6)
    assert serialised(made.clone()) == serialised(made)


def test_own_branch_outputs_gives_each_output_a_value_when_one_is_put_out_twice() -> None:
    made = passing("fails", "c", "c")
    assert own_branch_outputs(made) == 3
    for graph in nested_graphs(made.graph):
        assert len(set(graph.outputs)) == 2
    np.testing.assert_allclose(run(made, FEED)["y"], -np.exp(np.tanh(FEED["x"])), rtol=1e-6)


def test_own_branch_outputs_looks_into_nested_branches_and_further_out() -> None:
    inner = if_node("holds", branch([], ["c"]), one("Exp", ["c"], "e"), ["deep"], "if1")
    nodes = [C, if_node("holds", branch([inner], ["deep"]), branch([], ["x"])), OUT]
    made = model(nodes, [X], [Y], [HOLDS])
    assert own_branch_outputs(made) == 2
    np.testing.assert_allclose(run(made, FEED)["y"], -np.tanh(FEED["x"]), rtol=1e-6)


def test_own_branch_outputs_changes_nothing_when_branches_make_what_they_put_out() -> None:
    nodes = [C, if_node("holds", one("Exp", ["c"], "e"), one("Abs", ["c"], "a")), OUT]
    made = model(nodes, [X], [Y], [HOLDS])
    before = serialised(made)
    assert own_branch_outputs(made) == 0
    assert serialised(made) == before
