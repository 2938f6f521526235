from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import Interface, Recast
from surgery.normalise_scalar_inputs import normalise_scalar_inputs
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array
from tests.surgery.interfaces import WEIGHT, applied, conv, left_alone, node, noise, operators, same

SHAPE = [1, 4, 9]
X, Y = tensor("x", SHAPE), tensor("y", SHAPE)


def scalar(*nodes: onnx.NodeProto, dtype: int = TensorProto.FLOAT, constants: Any = (), **options: Any) -> ir.Model:
    """Inputs x [1, 4, 9] and s of rank 0, convolution x to c, and `nodes` to y."""
    return model([conv(), *nodes], [X, tensor("s", [], dtype)], [Y], [WEIGHT, *constants], **options)


def branch(op: str) -> onnx.GraphProto:
    return helper.make_graph([node(op, "c s", f"b_{op}")], op, [], [tensor(f"b_{op}", SHAPE)])


TABLE = constant("table", np.arange(12).reshape(3, 4, 1))
CASES: dict[str, tuple[ir.Model, type]] = {
    "divides": (scalar(node("Div", "c s", "y")), np.float32),
    "old opset": (scalar(node("Div", "c s", "y"), opset=9, ir_version=4), np.float32),
    "new opset": (scalar(node("Div", "c s", "y"), opset=21, ir_version=10), np.float32),
    "read twice": (scalar(node("Div", "c s", "d"), node("Add", "d s", "y")), np.float32),
    "both operands": (scalar(node("Mul", "s s", "q"), node("Add", "c q", "y")), np.float32),
    "meets rank 0": (
        scalar(
            node("Mul", "s two", "q"), node("Sqrt", "q", "r"), node("Add", "c r", "y"), constants=[constant("two", 2)]
        ),
        np.float32,
    ),
    "unsqueezed": (
        scalar(
            node("Unsqueeze", "s axes", "q"), node("Add", "c q", "y"), constants=[constant("axes", [0, 1], np.int64)]
        ),
        np.float32,
    ),
    "expanded": (
        scalar(node("Expand", "s to", "q"), node("Add", "c q", "y"), constants=[constant("to", [4, 9], np.int64)]),
        np.float32,
    ),
    "clips": (scalar(node("Clip", "c - s", "y")), np.float32),
    "indexes": (
        scalar(node("Gather", "table s", "q"), node("Add", "c q", "y"), dtype=TensorProto.INT64, constants=[TABLE]),
        np.int64,
    ),
    "truth value": (scalar(node("Where", "s c x", "y"), dtype=TensorProto.BOOL), np.bool_),
    "captured by branches": (
        scalar(
            node("ReduceMax", "c", "m", keepdims=0),
            node("Greater", "m s", "cond"),
            node("If", "cond", "y", then_branch=branch("Mul"), else_branch=branch("Add")),
        ),
        np.float32,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_normalise_scalar_inputs_makes_one_value_of_rank_0_a_vector(name: str) -> None:
    original, dtype = CASES[name]
    done = applied(normalise_scalar_inputs(), original)
    assert done.hits == 1
    assert done.interface == Interface(inputs=(Recast("s", (1,), np.dtype(dtype).name),))
    value: Array = np.asarray(2, dtype)
    x: Array = noise(*SHAPE)
    same(original, done.model, {"x": x, "s": value}, {"x": x, "s": value.reshape(1)})


def test_normalise_scalar_inputs_lets_an_if_read_the_input_itself_when_it_is_the_condition() -> None:
    branches = {
        name: helper.make_graph([node(op, "c", name)], name, [], [tensor(name, SHAPE)])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Tanh"))
    }
    original = scalar(node("If", "s", "y", **branches), dtype=TensorProto.BOOL)
    done = applied(normalise_scalar_inputs(), original)
    assert (done.hits, operators(done.model)) == (1, ["Conv", "If"])
    x = noise(*SHAPE)
    for value in (True, False):
        condition = np.asarray(value)
        same(original, done.model, {"x": x, "s": condition}, {"x": x, "s": condition.reshape(1)})


def test_normalise_scalar_inputs_names_its_nodes_and_takes_no_name_that_is_taken() -> None:
    taken = node("Tanh", "s", "s_normalise_scalar_inputs")
    done = applied(normalise_scalar_inputs(), scalar(taken, node("Add", "c s_normalise_scalar_inputs", "y")))
    assert done.model.graph[0].name == "s_normalise_scalar_inputs_"


def test_normalise_scalar_inputs_changes_all_of_several() -> None:
    nodes = [node("Mul", "x a", "m"), node("Add", "m b", "y")]
    original = model(nodes, [tensor("a", []), X, tensor("b", [])], [Y])
    done = applied(normalise_scalar_inputs(), original)
    assert [change.name for change in done.interface.inputs] == ["a", "b"]
    assert done.hits == 2
    x = noise(*SHAPE)
    a, b = np.float32(3), np.float32(-1)
    feed = {"a": np.asarray(a), "x": x, "b": np.asarray(b)}
    same(original, done.model, feed, {name: np.atleast_1d(array) for name, array in feed.items()})


@pytest.mark.parametrize(
    ("shape", "outputs"), [([1], [Y]), (["n"], [Y]), ([], [Y, tensor("s", [])])], ids=["one", "open", "output"]
)
def test_normalise_scalar_inputs_leaves_an_input_alone_when_it_is_no_scalar_or_an_output(
    shape: list[Any], outputs: list[onnx.ValueInfoProto]
) -> None:
    left_alone(normalise_scalar_inputs(), model([node("Mul", "x s", "y")], [X, tensor("s", shape)], outputs))


def test_normalise_scalar_inputs_leaves_a_weight_alone_when_it_is_listed() -> None:
    original = model([node("Mul", "x s", "y")], [X, tensor("s", [])], [Y], [constant("s", 2.0)])
    left_alone(normalise_scalar_inputs(), original)
