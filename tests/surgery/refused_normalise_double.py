"""Graphs of doubles that cannot become float32."""

from __future__ import annotations

import onnx_ir as ir
from onnx import TensorProto

from surgery.float_types import IN_RANGE, KNOWN_SHAPE
from surgery.normalise_double import normalise_double
from tests.surgery.float_graphs import scaled
from tests.surgery.refusals import Refusal

DOUBLE = TensorProto.DOUBLE


def huge(factor: float) -> ir.Model:
    return ir.from_proto(scaled(DOUBLE, [[factor, 1.0, 2.0, 3.0]]))


REFUSALS = (
    Refusal(normalise_double(), IN_RANGE, "weight 'k'", "it holds 1e+200", lambda: huge(1e200)),
    Refusal(normalise_double(), IN_RANGE, "weight 'k'", "it holds 1.797e+308", lambda: huge(-1.797e308)),
    Refusal(
        normalise_double(), KNOWN_SHAPE, "input 'x'", "[n, 4]", lambda: ir.from_proto(scaled(DOUBLE, shape=["n", 4]))
    ),
)
