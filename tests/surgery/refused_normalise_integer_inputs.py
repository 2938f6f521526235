"""Integer inputs that an engine cannot have and that cannot be made wider."""

from __future__ import annotations

import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.normalise_integer_inputs import CASTS_ONLY, KNOWN_SHAPE, normalise_integer_inputs
from tests.gates.small_graphs import model, tensor
from tests.surgery.refusals import Refusal

UINT8 = TensorProto.UINT8


def doubled() -> ir.Model:
    """uint8 arithmetic, which wraps around."""
    nodes = [helper.make_node("Add", ["n", "n"], ["m"], "twice"), helper.make_node("Cast", ["m"], ["y"], "real", to=1)]
    return model(nodes, [tensor("n", [4], UINT8)], [tensor("y", [4])])


def open_length() -> ir.Model:
    nodes = [helper.make_node("Cast", ["n"], ["y"], "real", to=1)]
    return model(nodes, [tensor("n", ["t"], UINT8)], [tensor("y", ["t"])])


REFUSALS = (
    Refusal(normalise_integer_inputs(), CASTS_ONLY, "input 'n'", "Add reads the uint8", doubled),
    Refusal(normalise_integer_inputs(), KNOWN_SHAPE, "input 'n'", "[t]", open_length),
)
