"""Dropouts that draw, or whose mask is of no known size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import TensorProto

from surgery.normalise_dropout import INFERENCE, KNOWN_MASK, normalise_dropout
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node
from tests.surgery.refusals import Refusal

_YES = constant("training", True, np.bool_)


def _graph(inputs: str, made: str, constants: Any, shape: tuple[int | str, ...] = (1, 4)) -> ir.Model:
    nodes = [node("Dropout", inputs, made), node("Cast", made.split()[-1], "y", to=TensorProto.FLOAT)]
    given = [tensor("x", shape)]
    have = {constant.name for constant in constants}
    given += [tensor(name, [], kind) for name, kind in _SCALARS.items() if name in inputs.split() and name not in have]
    return model(nodes, given, [tensor("y", shape)], constants)


_SCALARS = {"ratio": TensorProto.FLOAT, "training": TensorProto.BOOL}


def _refusal(precondition: str, got: str, *arguments: Any) -> Refusal:
    return Refusal(normalise_dropout(), precondition, "node 'n_d'", got, lambda: _graph(*arguments))


REFUSALS: tuple[Refusal, ...] = (
    _refusal(INFERENCE, "'training' is true", "x - training", "d", [_YES]),
    _refusal(INFERENCE, "'training' is true", "x ratio training", "d", [_YES, constant("ratio", 0.1)]),
    _refusal(INFERENCE, "'training' is true", "x ratio training", "d", [_YES]),
    _refusal(INFERENCE, "'training' is no constant", "x - training", "d", []),
    _refusal(KNOWN_MASK, "its mask 'm' has none", "x", "d m", [], ("n", 4)),
    _refusal(KNOWN_MASK, "its mask 'm' has none", "x", "d m", [], (10**6, 10**6)),
)
