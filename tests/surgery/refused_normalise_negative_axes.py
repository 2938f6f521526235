"""What `normalise_negative_axes` refuses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.normalise_negative_axes import normalise_negative_axes
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.refusals import Refusal


def _computed_axis() -> ir.Model:
    nodes = [helper.make_node("CumSum", ["x", "a"], ["y"], "op")]
    return model(nodes, [tensor("x", [2, 3]), tensor("a", [], TensorProto.INT64)], [tensor("y", [2, 3])])


def _unknown_rank() -> ir.Model:
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"], "reshape"),
        helper.make_node("CumSum", ["r", "a"], ["c"], "op"),
        helper.make_node("ReduceSum", ["c"], ["y"], "sum", keepdims=0),
    ]
    inputs = [tensor("x", [2, 3]), tensor("s", ["n"], TensorProto.INT64)]
    return model(nodes, inputs, [tensor("y", [])], [constant("a", -1, np.int64)])


REFUSALS = (
    Refusal(normalise_negative_axes(), "a constant axis of a CumSum", "node 'op'", "'a' is computed", _computed_axis),
    Refusal(
        normalise_negative_axes(),
        "an input of known rank beside a negative axis",
        "node 'op'",
        "none",
        _unknown_rank,
    ),
)
