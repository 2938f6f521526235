"""Where a mask goes, and what sees its size there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.mask_paths import Paths, Use, paths_of
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node


def followed(nodes: Sequence[onnx.NodeProto], trusting: bool = True, outputs: Sequence[str] = ("y",)) -> Paths | None:
    """The ways of the mask `k` from the first node, where it is the second input."""
    weights = [constant("k", -1e9), constant("zero", 0), constant("half", 0.5), constant("tiny", 1e-6)]
    weights += [constant("eight", 8), constant("low", -100), constant("lower", -1e8), constant("axes", [0], np.int64)]
    inputs = [tensor("x", [2, 3]), tensor("c", [2, 3], TensorProto.BOOL)]
    made = model(nodes, inputs, [tensor(name, [2, 3]) for name in outputs], weights)
    return paths_of(
        Use(made.graph[0], list(made.graph[0].inputs).index(made.graph.initializers["k"]), trusting=trusting)
    )


FILL = node("Where", "c x k", "m")
SOFTMAX = node("Softmax", "m", "y")

ENDS = {
    "softmax": [FILL, SOFTMAX],
    "exponential": [FILL, node("Exp", "m", "y")],
    "sigmoid": [FILL, node("Sigmoid", "m", "y")],
    "argmax": [FILL, node("ArgMax", "m", "a"), node("Cast", "a", "y", to=1)],
    "logarithm, then exponential": [FILL, node("LogSoftmax", "m", "l"), node("Exp", "l", "y")],
    "shapes": [FILL, node("Unsqueeze", "m axes", "u"), node("Squeeze", "u axes", "s"), node("Softmax", "s", "y")],
    "sum": [node("Add", "x k", "m"), SOFTMAX],
    "halved": [FILL, node("Mul", "m half", "h"), node("Softmax", "h", "y")],
    "truth": [FILL, node("Cast", "m", "t", to=TensorProto.BOOL), node("Where", "t x x", "y")],
    "compared with a score": [FILL, node("Less", "m low", "l"), node("Where", "l x x", "y")],
}


@pytest.mark.parametrize("name", ENDS)
def test_paths_of_comes_to_an_end_when_nothing_sees_the_masks_size(name: str) -> None:
    assert followed(ENDS[name]) == Paths()


SEEN = {
    "output": [FILL, node("Identity", "m", "y")],
    "tanh": [FILL, node("Tanh", "m", "y")],
    "sum of all": [FILL, node("ReduceSum", "m", "s"), node("Exp", "s", "y")],
    "scaled to nothing": [FILL, node("Mul", "m tiny", "h"), node("Softmax", "h", "y")],
    "scaled past fp16": [FILL, node("Mul", "m eight", "h"), node("Softmax", "h", "y")],
    "divisor": [FILL, node("Div", "x m", "h"), node("Softmax", "h", "y")],
    "compared with a mask": [FILL, node("Less", "m lower", "l"), node("Where", "l x x", "y")],
    "whole number": [
        FILL,
        node("Cast", "m", "i", to=TensorProto.INT64),
        node("Cast", "i", "f", to=1),
        node("Exp", "f", "y"),
    ],
    "one way of two": [FILL, node("Tanh", "m", "t"), node("Softmax", "m", "p"), node("Add", "t p", "y")],
    "nowhere": [FILL],
}


@pytest.mark.parametrize("name", SEEN)
def test_paths_of_is_none_when_a_way_sees_the_masks_size(name: str) -> None:
    assert followed(SEEN[name], outputs=["m"] if name == "nowhere" else ["y"]) is None


def test_paths_of_trusts_an_input_to_be_a_mask_when_told_to() -> None:
    nodes = [node("Mul", "x k", "m"), SOFTMAX]
    assert followed(nodes) == Paths()
    assert followed(nodes, trusting=False) is None


def named(nodes: Sequence[ir.Node]) -> list[str | None]:
    return [one.name for one in nodes]


@pytest.mark.parametrize("asks", [node("IsInf", "m", "gone"), node("Equal", "m k", "gone")])
def test_paths_of_names_what_asks_for_the_old_mask(asks: onnx.NodeProto) -> None:
    got = followed([FILL, asks, node("Softmax", "m", "p"), node("Where", "gone zero p", "y")])
    assert got is not None
    assert (named(got.asked), got.rows) == (["n_gone"], ())


@pytest.mark.parametrize(
    ("between", "asks", "wanted"),
    [
        ([], node("IsNaN", "p", "gone"), ["n_gone"]),
        ([], node("Equal", "p p", "gone"), ["n_gone"]),
        ([node("Cast", "p", "w", to=TensorProto.DOUBLE)], node("IsNaN", "w", "gone"), ["n_gone"]),
        ([], node("IsNaN", "x", "gone"), []),
        ([], node("Equal", "p x", "gone"), []),
        ([node("Add", "p x", "s")], node("IsNaN", "s", "gone"), []),  # what is added may be NaN itself
    ],
)
def test_paths_of_names_what_asks_for_nan_rows_when_it_is_of_the_softmax(
    between: Sequence[onnx.NodeProto], asks: onnx.NodeProto, wanted: list[str]
) -> None:
    got = followed([FILL, node("Softmax", "m", "p"), *between, asks, node("Where", "gone zero p", "y")])
    assert got is not None
    assert (named(got.rows), got.asked) == (wanted, ())
