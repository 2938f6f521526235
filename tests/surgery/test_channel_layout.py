from __future__ import annotations

import onnx_ir as ir

from surgery.channel_layout import lies_in_channels
from surgery.inferred import infer_types
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import WEIGHT, conv, node

X, Y = tensor("x", [1, 4, 9]), tensor("y", [1, 4, 9])


def lies(name: str, *nodes: object) -> bool:
    """Whether the value `name` of a graph of these nodes does."""
    made: ir.Model = model(nodes, [X], [Y], [WEIGHT, constant("wide", [[[[1.0]]], [[[2.0]]]])])
    infer_types(made)
    return lies_in_channels(next(value for each in made.graph for value in each.outputs if value.name == name))


def test_value_lies_in_channels_when_it_comes_from_a_convolution_elementwise() -> None:
    chain = (conv(), node("Tanh", "c", "t"), node("Mul", "x t", "m"), node("Softmax", "m", "y", axis=1))
    assert lies("c", *chain)
    assert lies("m", *chain), "one operand is enough"
    assert not lies("y", *chain), "Softmax is not elementwise"


def test_value_of_no_convolution_does_not() -> None:
    assert not lies("y", conv(), node("Neg", "x", "n"), node("Add", "n n", "y"))


def test_what_is_spread_on_the_way_does_not_count() -> None:
    assert not lies("s", conv(), node("Mul", "c wide", "s"), node("Identity", "c", "y"))
