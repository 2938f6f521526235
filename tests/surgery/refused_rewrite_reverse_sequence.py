"""What `rewrite_reverse_sequence` refuses."""

from __future__ import annotations

import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.rewrite_reverse_sequence import rewrite_reverse_sequence
from tests.gates.small_graphs import model, tensor
from tests.surgery.refusals import Refusal


def _computed_length() -> ir.Model:
    nodes = [helper.make_node("ReverseSequence", ["x", "n"], ["y"], "op")]
    return model(nodes, [tensor("x", [4, 1]), tensor("n", [1], TensorProto.INT64)], [tensor("y", [4, 1])])


REFUSALS = (
    Refusal(
        rewrite_reverse_sequence(),
        "a constant length where one sequence is reversed",
        "node 'op'",
        "'n' is computed",
        _computed_length,
    ),
)
