from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surgery.fold_neutral_operands import fold_neutral_operands
from tests.gates.small_graphs import tensor
from tests.surgery.layer_graphs import layers, node
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = fold_neutral_operands()

TANH = node("Tanh", "x", "h")

K: dict[str, Any] = {
    "zeros": np.zeros((1, 6, 10)), "ones": np.ones((1, 6, 10)), "nought": 0.0, "one": 1.0,
    "rows": np.ones((6, 1)), "wide0": np.zeros((1, 6, 20)), "rank0": np.zeros((1, 1, 6, 10)), "almost": 1e-30,
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Add", "h zeros"), ("Add", "nought h"), ("Sub", "h zeros"), ("Mul", "h ones"), ("Mul", "rows h"),
        ("Div", "h rows"), ("Pow", "h one"),
    ],
)  # fmt: skip
def test_node_goes_when_its_constant_changes_nothing(op: str, inputs: str) -> None:
    assert operators(equal_after(PASS, layers(TANH, node(op, inputs, "y"), **K))) == ["Tanh"]
    behind = layers(TANH, node(op, inputs, "a"), node("Relu", "a", "y"), **K)
    assert operators(equal_after(PASS, behind)) == ["Tanh", "Relu"]


def test_nodes_go_when_they_stand_in_a_row_and_share_a_constant() -> None:
    made = layers(TANH, node("Add", "h zeros", "a"), node("Mul", "a ones", "c"), node("Add", "zeros c", "y"), **K)
    assert operators(equal_after(PASS, made, hits=3)) == ["Tanh"]


def test_output_keeps_its_name_when_the_node_that_made_it_goes() -> None:
    made = equal_after(PASS, layers(TANH, node("Add", "h zeros", "y"), node("Relu", "h", "z"), outputs="y z", **K))
    assert [value.name for value in made.graph.outputs] == ["y", "z"]


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Sub", "nought h"), ("Div", "one h"), ("Pow", "one h"), ("Add", "h one"), ("Mul", "h zeros"),
        ("Add", "h almost"), ("Add", "h h"), ("Pow", "h nought"), ("Mul", "h each"),
    ],
)  # fmt: skip
def test_node_stays_when_its_constant_changes_something(op: str, inputs: str) -> None:
    left_alone(PASS, layers(TANH, node(op, inputs, "y"), **K))


LEFT = {
    "makes it larger": layers(node("Tanh", "x", "h"), node("Add", "h wide0", "y"), shape=(1, 6, 1), **K),
    "of another rank": layers(
        TANH, node("Add", "h rank0", "a"), node("Reshape", "a sizes", "y"), sizes=np.array([1, 6, 10]), **K
    ),
    "unknown shape": layers(node("Tanh", "x", "h"), node("Add", "h zeros", "y"), shape=(1, "c", 10), **K),
    "an input as an output": layers(node("Add", "x zeros", "y"), **K),
    "an output as another": layers(TANH, node("Add", "h zeros", "y"), outputs="h y", **K),
    "a zero that can be fed": layers(TANH, node("Add", "h k", "y"), fed=[tensor("k", [])]),
}


@pytest.mark.parametrize("name", LEFT)
def test_node_stays_when(name: str) -> None:
    left_alone(PASS, LEFT[name])
