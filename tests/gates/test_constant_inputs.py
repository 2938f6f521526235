"""Inputs that the toolkit needs as constants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from gates.constant_inputs import VaryingInput, varying_input
from tests.gates.small_graphs import constant, model, tensor


def asked(op: str, inputs: list[str]) -> VaryingInput | None:
    """What is said of a node that reads x, the input n, or r made of it, or constants w and d, or m made of d."""
    nodes = [
        helper.make_node("Neg", ["n"], ["r"], "from_input"),
        helper.make_node("NonZero", ["d"], ["m"], "from_constant"),
        helper.make_node(op, inputs, ["y"], "asked"),
    ]
    fed = [tensor("x", [1, 4]), tensor("n", [2], TensorProto.INT64)]
    made = model(nodes, fed, [helper.make_tensor_value_info("y", 1, None)], [constant("w", [1, 4], np.int64), D])
    known = set(made.graph.initializers.values())
    return varying_input(made.graph[2], known)


D = constant("d", np.ones((2, 2)))


@pytest.mark.parametrize(
    ("op", "inputs", "says", "decides_a_shape"),
    [
        ("Reshape", ["x", "n"], "input 'n' decides a shape and is an input of the graph; an engine's", True),
        ("Reshape", ["x", "r"], "input 'r' decides a shape and depends on the input 'n'; an engine's", True),
        ("Tile", ["x", "m"], "input 'm' decides a shape and comes from NonZero, node 'from_constant'; an", True),
        ("PRelu", ["x", "n"], "input 'n' is taken for a weight and is an input of the graph; the toolkit", False),
        ("Conv", ["x", "x", "r"], "input 'r' is taken for a weight and depends on the input 'n'; the toolkit", False),
    ],
)
def test_varying_input_says_what_it_decides_and_where_it_comes_from(
    op: str, inputs: list[str], says: str, decides_a_shape: bool
) -> None:
    found = asked(op, inputs)
    assert found is not None
    assert f"{found.which}; {found.remedy}".startswith(says)
    assert found.decides_a_shape is decides_a_shape


@pytest.mark.parametrize(("op", "inputs"), [("Reshape", ["x", "w"]), ("Add", ["x", "n"]), ("Pad", ["x", "w", "n"])])
def test_varying_input_is_silent_when_the_constant_is_one_or_need_not_be(op: str, inputs: list[str]) -> None:
    assert asked(op, inputs) is None
