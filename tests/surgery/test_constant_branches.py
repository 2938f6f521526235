"""The branch of an If, in its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.constant_branches import inline_branch, taken_branch
from surgery.scopes import names_of
from tests.cases.graphs import branches
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check
from tests.surgery.interfaces import node

THEN, ELSE = ("then_branch", "else_branch"), ("else_branch", "then_branch")


def the_if(made: ir.Model) -> ir.Node:
    return next(one for one in made.graph if one.op_type == "If")


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [(True, np.bool_, THEN), (False, np.bool_, ELSE), ([True], np.bool_, THEN), ([False], np.bool_, ELSE)],
)
def test_taken_branch_is_the_conditions_when_it_is_constant(values: Any, dtype: Any, wanted: tuple[str, str]) -> None:
    assert taken_branch(the_if(ir.from_proto(branches(constant("cond", values, dtype))))) == wanted


def test_taken_branch_is_none_when_the_condition_is_an_input_or_it_is_no_if() -> None:
    made = ir.from_proto(branches(None))
    assert [taken_branch(one) for one in made.graph] == [None, None, None]
    elsewhere = ir.from_proto(branches(constant("cond", True, np.bool_)))
    the_if(elsewhere).domain = "com.microsoft"
    assert [taken_branch(one) for one in elsewhere.graph] == [None, None, None]


@pytest.mark.parametrize("yes", [True, False])
def test_inline_branch_computes_what_the_if_did_when_the_branch_reads_from_outside(yes: bool) -> None:
    made = branches(constant("cond", yes, np.bool_))
    feed = {"x": np.random.default_rng(3).standard_normal((1, 8, 32)).astype(np.float32)}
    wanted = run(made, feed)["y"]
    inlined = ir.from_proto(made)
    inline_branch(the_if(inlined), *(THEN if yes else ELSE), names_of(inlined.graph), "test")
    check(inlined)
    assert [one.op_type for one in inlined.graph] == ["Conv", "Mul" if yes else "Identity", "Tanh"]
    np.testing.assert_array_equal(run(inlined, feed)["y"], wanted)


def branching(then: onnx.GraphProto, outputs: str, outer: str = "t") -> ir.Model:
    """x + 1 as `outer`, an If that is true and whose else branch gives x so many times, and the sum of all."""
    made = outputs.split()
    same = [node("Identity", "x", f"e{place}") for place in range(len(made))]
    other = helper.make_graph(same, "else", [], [tensor(f"e{place}", [1, 2]) for place in range(len(made))])
    nodes = [
        helper.make_node("Add", ["x", "one"], [outer], "add"),
        helper.make_node("If", ["yes"], made, "choose", then_branch=then, else_branch=other),
        helper.make_node("Sum", [outer, *made], ["y"], "sum"),
    ]
    weights = [constant("yes", True, np.bool_), constant("one", 1.0)]
    return model(nodes, [tensor("x", [1, 2])], [tensor("y", [1, 2])], weights)


def test_inline_branch_renames_what_is_inside_when_the_name_is_taken_outside() -> None:
    inside = [helper.make_node("Mul", ["x", "two"], ["u"], "add")]
    then = helper.make_graph(inside, "then", [], [tensor("u", [1, 2])], [constant("two", 2.0)])
    made = branching(then, "a", outer="two")
    inline_branch(the_if(made), *THEN, names_of(made.graph), "test")
    check(made)
    assert len({one.name for one in made.graph}) == len({v.name for one in made.graph for v in one.outputs}) == 3
    assert len({*made.graph.initializers} & {value.name for one in made.graph for value in one.outputs}) == 0
    # (x + 1) + 2 x
    np.testing.assert_array_equal(run(made, {"x": np.array([[3, 5]], np.float32)})["y"], [[10, 16]])


def test_inline_branch_gives_every_output_when_two_are_one_value_and_one_is_a_weight() -> None:
    inside = [helper.make_node("Neg", ["x"], ["u"], "neg")]
    outputs = [tensor("u", [1, 2]), tensor("u", [1, 2]), tensor("w", [1, 2])]
    then = helper.make_graph(inside, "then", [], outputs, [constant("w", [[7.0, 8.0]])])
    made = branching(then, "a b c")
    inline_branch(the_if(made), *THEN, names_of(made.graph), "test")
    check(made)
    # (x + 1) - x - x + w
    np.testing.assert_array_equal(run(made, {"x": np.array([[3, 5]], np.float32)})["y"], [[5, 4]])


def test_inline_branch_keeps_an_outputs_name_when_the_branch_gives_an_outer_value() -> None:
    branch = {
        f"{which}_branch": helper.make_graph(
            [node("Identity", source, f"{which}_out")], which, [], [tensor(f"{which}_out", [1, 2])]
        )
        for which, source in (("then", "t"), ("else", "x"))
    }
    nodes = [node("Neg", "x", "t"), helper.make_node("If", ["yes"], ["y"], "choose", **branch)]
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    made = model(nodes, [tensor("x", [1, 2])], [tensor("y", [1, 2])], [yes])
    inner = the_if(made).attributes["then_branch"].as_graph()
    inner.outputs[0] = made.graph[0].outputs[0]
    inline_branch(the_if(made), *THEN, names_of(made.graph), "test")
    check(made)
    np.testing.assert_array_equal(run(made, {"x": np.array([[3, 5]], np.float32)})["y"], [[-3, -5]])
