"""Calls of local functions become the nodes of their bodies, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, TensorProto, helper

from surgery.declaration import Rewritten
from surgery.decompose_functions import decompose_functions
from tests.gates.small_graphs import chain, constant, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.surgery.local_functions import (
    FOUR_TIMES,
    TWICE,
    X,
    Y,
    call,
    function,
    given,
    graph,
    of_another_opset,
    unfolding,
)

FEED = {"x": np.array([[0.5, -1.25, 2, -3]], np.float32)}


def decompose(original: ir.Model) -> Rewritten:
    before = serialised(original)
    done = decompose_functions().rewrite(original)
    assert serialised(original) == before
    assert not done.refused
    assert not done.model.functions
    check(done.model)
    assert serialised(decompose_functions().rewrite(original).model) == serialised(done.model)
    return done


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize(
    ("nodes", "functions", "hits", "wanted"),
    [
        ([call("Twice", ["x"], ["y"])], [TWICE], 2, ["Add"]),
        ([call("Four", ["x"], ["y"])], [FOUR_TIMES, TWICE], 5, ["Add", "Add"]),
        ([call("Twice", ["x"], ["b"], "c0"), call("Twice", ["b"], ["y"], "c1")], [TWICE], 3, ["Add", "Add"]),
        ([call("Twice", ["x"], ["y"])], [FOUR_TIMES, TWICE], 5, ["Add"]),
    ],
    ids=["one call", "nested", "names clash", "one is not called"],
)
def test_decompose_functions_puts_bodies_in_the_place_of_calls(
    nodes: Sequence[onnx.NodeProto], functions: Sequence[onnx.FunctionProto], hits: int, wanted: list[str]
) -> None:
    original = graph(nodes, functions)
    done = decompose(original)
    assert done.hits == hits
    assert operators(done.model) == wanted
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])


@pytest.mark.parametrize("slope", [0.3, None])
def test_decompose_functions_passes_attributes_on(slope: float | None) -> None:
    leaky = function(
        "Leaky", ["a"], ["b"], [given("LeakyRelu", "alpha", "slope", AttributeProto.FLOAT, ["a"], "b")], ["slope"]
    )
    attributes: dict[str, Any] = {} if slope is None else {"slope": slope}
    done = decompose(graph([call("Leaky", ["x"], ["y"], **attributes)], [leaky]))
    negative = np.float32(0.01 if slope is None else slope)  # 0.01: ONNX's default
    np.testing.assert_array_equal(run(done.model, FEED)["y"], np.where(FEED["x"] < 0, FEED["x"] * negative, FEED["x"]))


def test_decompose_functions_inlines_a_call_in_a_branch_when_names_clash() -> None:
    def branch(node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], "branch", [], [tensor(node.output[0], [1, 4])])

    then, other = branch(call("Twice", ["t"], ["b"], "deep")), branch(helper.make_node("Neg", ["t"], ["add"], "neg"))
    nodes = [
        call("Four", ["x"], ["t"], "c0"),
        helper.make_node("If", ["cond"], ["i"], "if0", then_branch=then, else_branch=other),
        call("Twice", ["i"], ["y"], "c1"),
    ]
    original = graph(nodes, [FOUR_TIMES, TWICE], [X, tensor("cond", [], TensorProto.BOOL)])
    done = decompose(original)
    for cond in (True, False):
        feed = {**FEED, "cond": np.array(cond)}
        np.testing.assert_array_equal(run(done.model, feed)["y"], run(original, feed)["y"])
        np.testing.assert_array_equal(run(done.model, feed)["y"], FEED["x"] * (16 if cond else -8))


def test_decompose_functions_keeps_names_when_a_function_gives_an_input_back() -> None:
    """onnxruntime does not take such a function; the numbers are numpy's."""
    passes = function("Passes", ["a", "k"], ["a", "m"], [helper.make_node("Mul", ["a", "k"], ["m"], "mul")])
    nodes = [call("Passes", ["x", "w"], ["y", "z"], "c0"), call("Passes", ["z", "w"], ["y2"], "c1")]
    outputs = [Y, tensor("z", [1, 4]), tensor("y2", [1, 4])]
    done = decompose(graph(nodes, [passes], [X], outputs, [constant("w", [2.0])]))
    assert [value.name for value in (*done.model.graph.inputs, *done.model.graph.outputs)] == ["x", "y", "z", "y2"]
    got = run(done.model, FEED)
    np.testing.assert_array_equal(got["y"], FEED["x"])
    np.testing.assert_array_equal(got["z"], FEED["x"] * 2)
    np.testing.assert_array_equal(got["y2"], FEED["x"] * 2)


def test_decompose_functions_keeps_what_a_call_leaves_out_when_the_body_needs_it() -> None:
    both = function(
        "Both",
        ["a"],
        ["n", "e"],
        [helper.make_node("Neg", ["a"], ["n"], "n"), helper.make_node("Exp", ["n"], ["e"], "e")],
    )
    done = decompose(graph([call("Both", ["x"], ["", "y"])], [both]))
    np.testing.assert_allclose(run(done.model, FEED)["y"], np.exp(-FEED["x"]), rtol=1e-6)


def test_decompose_functions_leaves_out_an_optional_input() -> None:
    clips = function(
        "Clips", ["a", "low", "high"], ["b"], [helper.make_node("Clip", ["a", "low", "high"], ["b"], "clip")]
    )
    done = decompose(graph([call("Clips", ["x", "", "high"], ["y"])], [clips], weights=[constant("high", 1.0)]))
    np.testing.assert_array_equal(run(done.model, FEED)["y"], np.minimum(FEED["x"], 1))


def test_decompose_functions_returns_the_same_model_when_there_are_none() -> None:
    original = chain("Tanh", "Neg")
    assert decompose_functions().rewrite(original).model is original


def test_decompose_functions_unfolds_a_thousand_nodes() -> None:
    done = decompose(unfolding(3))
    assert len(operators(done.model)) == 1000
    assert len({node.name for node in done.model.graph}) == 1000


@pytest.mark.parametrize("opset", [13, 17, 18])
def test_decompose_functions_takes_another_opset_when_its_operators_mean_the_same(opset: int) -> None:
    done = decompose(of_another_opset("Tanh", opset))
    assert operators(done.model) == ["Tanh"]
    assert done.model.opset_imports[""] == 17


def test_decompose_functions_brings_no_second_opset_when_a_function_spells_the_domain_out() -> None:
    spelled = function("Old", ["a"], ["b"], [helper.make_node("Tanh", ["a"], ["b"], "at", domain="ai.onnx")])
    del spelled.opset_import[:]
    spelled.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    done = decompose(graph([call("Old", ["x"], ["y"])], [spelled]))
    assert {done.model.opset_imports.get(domain, 17) for domain in ("", "ai.onnx")} == {17}
