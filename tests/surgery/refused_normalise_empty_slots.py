"""What `normalise_empty_slots` refuses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.normalise_empty_slots import normalise_empty_slots
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.refusals import Refusal


def _slice_of_open_starts() -> ir.Model:
    nodes = [helper.make_node("Slice", ["x", "s", "s", "", "s"], ["y"], "op")]
    inputs = [tensor("x", [4, 4]), tensor("s", ["n"], TensorProto.INT64)]
    return model(nodes, inputs, [tensor("y", ["a", "b"])])


def _gru_of_open_weights() -> ir.Model:
    nodes = [helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["y"], "op", hidden_size=2)]
    inputs = [tensor("x", [4, 1, 3]), tensor("r", [1, "n", 2])]
    constants = [constant("w", np.ones((1, 6, 3))), constant("h", np.ones((1, 1, 2)))]
    return model(nodes, inputs, [tensor("y", [4, 1, 1, 2])], constants)


REFUSALS = (
    Refusal(normalise_empty_slots(), "starts of known length", "node 'op'", "none", _slice_of_open_starts),
    Refusal(normalise_empty_slots(), "recurrent weights of known shape", "node 'op'", "none", _gru_of_open_weights),
)
