"""Which tensor a value repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from surgery.inferred import inferred
from surgery.passing import passed_value
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node

SHAPE = (1, 2, 3)
WEIGHTS = [
    constant("one", 1.0), constant("ones", np.ones((2, 1))), constant("zero", 0.0), constant("two", 2.0),
    constant("wide", np.zeros((4, 1, 2, 3))), constant("same", SHAPE, np.int64), constant("flat", [6], np.int64),
    constant("once", [1, 1, 1], np.int64), constant("twice", [1, 1, 2], np.int64),
    constant("none", [0] * 6, np.int64), constant("some", [0, 0, 1, 0, 0, 0], np.int64),
    constant("from", [0], np.int64), constant("last", [-1], np.int64), constant("to", [9], np.int64),
    constant("before", [-9], np.int64), constant("axis", [2], np.int64), constant("back", [-1], np.int64),
]  # fmt: skip


def repeated(nodes: Sequence[onnx.NodeProto]) -> str | None:
    """What the output y of the last node repeats: a name."""
    made = model(nodes, [tensor("x", SHAPE)], [tensor("y", [f"d{axis}" for axis in range(4)])], WEIGHTS)
    made.graph.outputs[0].shape = None
    known = inferred(made)
    return passed_value(made.graph.outputs[0], known).name


REPEATS = {
    "Identity": [node("Identity", "x", "y")],
    "two": [node("Identity", "x", "a"), node("Dropout", "a", "y")],
    "there and back": [node("Reshape", "x flat", "a"), node("Reshape", "a same", "y")],
    "Reshape to the same": [node("Reshape", "x same", "y")],
    "Cast to the same": [node("Cast", "x", "y", to=TensorProto.FLOAT)],
    "Expand to the same": [node("Expand", "x once", "y")],
    "Tile once": [node("Tile", "x once", "y")],
    "Concat of one": [node("Concat", "x", "y", axis=0)],
    "Max of one": [node("Max", "x", "y")],
    "Transpose of ones": [node("Transpose", "x", "a", perm=[1, 0, 2]), node("Reshape", "a same", "y")],
    "Transpose twice": [node("Transpose", "x", "a", perm=[1, 2, 0]), node("Transpose", "a", "y", perm=[2, 0, 1])],
    "Transpose backwards twice": [node("Transpose", "x", "a"), node("Transpose", "a", "y")],
    "Mul by 1": [node("Mul", "x one", "y")],
    "1 times": [node("Mul", "one x", "y")],
    "Mul by ones": [node("Mul", "x ones", "y")],
    "Add of 0": [node("Add", "zero x", "y")],
    "Sub of 0": [node("Sub", "x zero", "y")],
    "Div by 1": [node("Div", "x one", "y")],
    "Pow 1": [node("Pow", "x one", "y")],
    "Pad of nothing": [node("Pad", "x none", "y")],
    "Slice of all": [node("Slice", "x from to axis", "y")],
}


@pytest.mark.parametrize("name", REPEATS)
def test_passed_value_is_the_input_when_nothing_changes_on_the_way(name: str) -> None:
    assert repeated(REPEATS[name]) == "x"


CHANGES = {
    "Relu": [node("Relu", "x", "y")],
    "another shape": [node("Reshape", "x flat", "y")],
    "another type": [node("Cast", "x", "y", to=TensorProto.DOUBLE)],
    "rounded there and back": [
        node("Cast", "x", "a", to=TensorProto.INT64),
        node("Cast", "a", "y", to=TensorProto.FLOAT),
    ],
    "Tile twice": [node("Tile", "x twice", "y")],
    "Concat of two": [node("Concat", "x x", "y", axis=0)],
    "Transpose": [node("Transpose", "x", "y", perm=[0, 2, 1])],
    "Transpose twice another way": [
        node("Transpose", "x", "a", perm=[1, 2, 0]),
        node("Transpose", "a", "y", perm=[1, 2, 0]),
    ],
    "Mul by 2": [node("Mul", "x two", "y")],
    "1 over": [node("Div", "one x", "y")],
    "0 less": [node("Sub", "zero x", "y")],
    "1 to the power": [node("Pow", "one x", "y")],
    "Add of wider zeros": [node("Add", "x wide", "y")],
    "Pad of something": [node("Pad", "x some", "y")],
    "Slice backwards": [node("Slice", "x last before axis back", "y")],
}


@pytest.mark.parametrize("name", CHANGES)
def test_passed_value_is_not_the_input_when_something_changes(name: str) -> None:
    assert repeated(CHANGES[name]) != "x"


def test_passed_value_is_a_tensor_on_the_way_when_what_is_before_is_another() -> None:
    assert repeated([node("Relu", "x", "a"), node("Identity", "a", "b"), node("Identity", "b", "y")]) == "a"


def test_passed_value_is_itself_when_the_operator_is_not_onnxs() -> None:
    made = model([node("Identity", "x", "y")], [tensor("x", SHAPE)], [tensor("y", SHAPE)])
    made.graph[0].domain = "com.microsoft"
    assert passed_value(made.graph.outputs[0], {}) is made.graph.outputs[0]
