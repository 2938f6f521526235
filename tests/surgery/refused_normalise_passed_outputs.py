"""Outputs that no engine can give."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
from onnx import TensorProto

from surgery.normalise_passed_outputs import COMPUTED, FLOATS, NO_INPUT, normalise_passed_outputs
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node
from tests.surgery.refusals import Refusal

_X, _Y = tensor("x", [1, 4]), tensor("y", [1, 4])
_K = constant("k", [1.0, 2.0])
_INT = tensor("z", [], TensorProto.INT64)


def _with(*nodes: onnx.NodeProto, output: Any, inputs: Any = (), constants: Any = (_K,)) -> ir.Model:
    return model([node("Tanh", "x", "y"), *nodes], [_X, *inputs], [_Y, output], constants)


def _repeated(source: str, dtype: int, *nodes: onnx.NodeProto) -> ir.Model:
    made = [node("Tanh", "x", "y"), *nodes, node("Identity", source, "z")]
    return model(made, [_X], [_Y, tensor(source, [1, 4], dtype), tensor("z", [1, 4], dtype)])


_SIGN = node("Cast", "y", "i", to=TensorProto.INT64)
_TRUTH = node("Cast", "y", "b", to=TensorProto.BOOL)

REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(normalise_passed_outputs(), precondition, f"output '{name}'", got, build)
    for precondition, name, got, build in (
        (NO_INPUT, "x", "the input of that name", lambda: _with(output=_X)),
        (NO_INPUT, "u", "the input of that name", lambda: _with(output=tensor("u", [1]), inputs=[tensor("u", [1])])),
        (COMPUTED, "k", "a constant", lambda: _with(output=tensor("k", [2]))),
        (COMPUTED, "z", "a constant", lambda: _with(node("Identity", "k", "z"), output=tensor("z", [2]))),
        (COMPUTED, "z", "a constant", lambda: _with(node("Neg", "k", "z"), output=tensor("z", [2]))),
        (COMPUTED, "z", "a constant", lambda: _with(node("Constant", "", "z", value_int=3), output=_INT)),
        (FLOATS, "z", "repeats the output 'i' and holds INT64", lambda: _repeated("i", TensorProto.INT64, _SIGN)),
        (FLOATS, "z", "repeats the output 'b' and holds BOOL", lambda: _repeated("b", TensorProto.BOOL, _TRUTH)),
    )
)
