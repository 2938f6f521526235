"""Forms of operators that the toolkit breaks on are refused by node; the forms next to them are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.operators import operators
from tests.gates.small_graphs import constant, model, tensor

WEIGHTS = [constant("w", np.zeros((1, 32, 6))), constant("r", np.zeros((1, 32, 8))), constant("p", np.zeros((1, 24)))]
IMAGE, VOLUME = (1, 4, 8, 8), (1, 4, 6, 8, 8)
SCALES = [constant("s4", [1, 1, 2, 2]), constant("s5", [1, 1, 2, 2, 2])]


def one(op: str, inputs: str, shape: Sequence[int] = IMAGE, **attributes: Any) -> ir.Model:
    """One node; "-" in `inputs` is an empty slot."""
    names = [name if name != "-" else "" for name in inputs.split()]
    node = helper.make_node(op, names, ["y"], "at", **attributes)
    return model([node], [tensor("x", shape)], [tensor("y", ["a"] * len(shape))], [*WEIGHTS, *SCALES])


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (one("Resize", "x - s4", mode="cubic"), "breaks on a cubic Resize"),
        (one("Resize", "x - s5", VOLUME, mode="linear"), "breaks on a Resize of rank 5"),
        (one("Resize", "x - s5", VOLUME), "breaks on a Resize of rank 5"),
        (one("MaxPool", "x", VOLUME, kernel_shape=[2, 2, 2]), "breaks on a MaxPool over three axes"),
        (one("MaxPool", "x", kernel_shape=[3, 3], dilations=[1, 2]), "no dilations of a MaxPool"),
        (one("LSTM", "x w r - - - - p", (11, 1, 6), hidden_size=8), "no peepholes"),
        (one("Cast", "x", to=TensorProto.UINT8), "has no uint8"),
        (one("Cast", "x", to=TensorProto.UINT16), "has no uint16"),
    ],
)
def test_operators_fails_naming_the_node_when_the_toolkit_breaks_on_its_form(graph: ir.Model, reason: str) -> None:
    verdict = operators(graph)
    assert verdict.status is Status.FAILED
    assert "node 'at' (" in verdict.detail
    assert reason in verdict.detail


@pytest.mark.parametrize(
    "graph",
    [
        one("Resize", "x - s4", mode="linear"),
        one("Resize", "x - s4"),
        one("MaxPool", "x", kernel_shape=[3, 3], dilations=[1, 1]),
        one("AveragePool", "x", VOLUME, kernel_shape=[2, 2, 2]),
        one("LSTM", "x w r", (11, 1, 6), hidden_size=8),
        one("Cast", "x", to=TensorProto.INT8),
        one("Cast", "p", to=TensorProto.UINT8),  # of a constant: the toolkit folds it
    ],
)
def test_operators_passes_the_forms_beside_those(graph: ir.Model) -> None:
    assert operators(graph).status is Status.PASSED
