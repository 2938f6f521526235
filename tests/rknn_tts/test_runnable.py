from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from rknn_tts.runnable import make_runnable
from tests.gates.small_graphs import constant, model, row, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised

X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])


def drawing(**attributes: Any) -> ir.Model:
    """y = x + two draws."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"], "draw", **attributes),
        helper.make_node("RandomNormalLike", ["x"], ["b"], "again"),
        helper.make_node("Sum", ["x", "a", "b"], ["y"], "sum"),
    ]
    return model(nodes, [X], [Y])


def test_graph_draws_the_same_each_time_it_is_opened_whatever_else_is_in_it() -> None:
    first = drawing()
    make_runnable(first)
    second = first.clone()
    second.graph.insert_before(second.graph[0], ir.node("Neg", [second.graph.inputs[0]], name="dead"))
    feed = {"x": row(1, 2, 3, 4)}
    np.testing.assert_array_equal(run(first, feed)["y"], run(second, feed)["y"])
    assert [node.attributes["seed"].as_float() for node in first.graph if "seed" in node.attributes] == [1.0, 2.0]


def test_seed_that_is_there_stays() -> None:
    given = drawing(seed=7.0)
    make_runnable(given)
    assert given.graph[0].attributes["seed"].as_float() == 7.0


def test_later_nodes_of_a_name_get_another_and_no_other_does() -> None:
    names = ["a", "b", "a", "", "a_2", "", "a"]
    nodes = [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"], name) for i, name in enumerate(names)]
    given = model(nodes, [tensor("t0", [1, 4])], [tensor("t7", [1, 4])])
    make_runnable(given)
    assert [node.name for node in given.graph if node.name] == ["a", "b", "a_3", "a_2", "a_4"]
    np.testing.assert_array_equal(run(given, {"t0": row(1, 2, 3, 4)})["t7"], -row(1, 2, 3, 4))


def test_parts_of_a_split_that_nobody_reads_get_a_name() -> None:
    nodes = [helper.make_node("Split", ["x", "sizes"], ["", "y", ""], "split", axis=1)]
    given = model(nodes, [X], [tensor("y", [1, 2])], [constant("sizes", [1, 2, 1], np.int64)])
    make_runnable(given)
    check(given)
    np.testing.assert_array_equal(run(given, {"x": row(1, 2, 3, 4)})["y"], row(2, 3))


def test_branch_that_puts_out_an_outer_tensor_runs() -> None:
    branches = {
        name: helper.make_graph([], name, [], [helper.make_tensor_value_info(outer, 1, [1, 4])])
        for name, outer in (("then_branch", "x"), ("else_branch", "n"))
    }
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], "neg"),
        helper.make_node("If", ["condition"], ["y"], "if0", **branches),
    ]
    given = model(nodes, [X], [Y], [constant("condition", False, np.bool_)])
    make_runnable(given)
    np.testing.assert_array_equal(run(given, {"x": row(1, 2, 3, 4)})["y"], row(-1, -2, -3, -4))


def test_graph_that_runs_as_it_is_stays_as_it_is() -> None:
    given = model([helper.make_node("Neg", ["x"], ["y"], "neg")], [X], [Y])
    before = serialised(given)
    make_runnable(given)
    assert serialised(given) == before


@pytest.mark.parametrize(("given", "wanted"), [(3, 3), (11, 11), (12, 11), (14, 11)])
def test_graph_has_an_ir_version_that_onnxruntime_reads(given: int, wanted: int) -> None:
    made = model([helper.make_node("Neg", ["x"], ["y"], "neg")], [X], [Y])
    made.ir_version = given
    make_runnable(made)
    assert made.ir_version == wanted
    np.testing.assert_array_equal(run(made, {"x": row(1, 2, 3, 4)})["y"], row(-1, -2, -3, -4))
