"""What is listed as element by element is: changing one element of the input changes that one of the output alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from surgery.elementwise import ELEMENTWISE
from surgery.matching import Matched
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run

SHAPE = [1, 2, 7]
CHANGED = (0, 1, 3)

INPUTS: dict[str, list[str]] = {
    **{op: ["x", "half"] for op in ("Add", "Div", "Max", "Min", "Mul", "PRelu", "Pow", "Sub", "Sum")},
    "Clip": ["x", "half", "two"],
    "Where": ["yes", "x", "half"],
}
ATTRIBUTES: dict[str, dict[str, Any]] = {"Cast": {"to": TensorProto.DOUBLE}, "LeakyRelu": {"alpha": 0.2}}


def graph_of(matched: Matched) -> onnx.ModelProto:
    names = INPUTS.get(matched.op, ["x"])
    node = helper.make_node(matched.op, names, ["y"], **ATTRIBUTES.get(matched.op, {}))
    dtype = TensorProto.DOUBLE if matched.op == "Cast" else TensorProto.FLOAT
    constants = [constant("half", 0.5), constant("two", 2.0), constant("yes", True, bool)]
    return proto([node], [tensor("x", SHAPE)], [tensor("y", SHAPE, dtype)], constants)


@pytest.mark.parametrize("matched", ELEMENTWISE, ids=lambda matched: matched.op)
def test_elementwise_operator_keeps_every_element_in_its_place(matched: Matched) -> None:
    model = graph_of(matched)
    x = np.linspace(0.6, 0.9, 14, dtype=np.float32).reshape(SHAPE)
    other = x.copy()
    other[CHANGED] = 1.5
    before, after = run(model, {"x": x})["y"], run(model, {"x": other})["y"]
    assert list(before.shape) == SHAPE
    changed = np.argwhere(before != after)
    assert {tuple(place) for place in changed} <= {CHANGED}
    # Min with 0.5 alone gives the same for both.
    assert len(changed) == (matched.op != "Min")
