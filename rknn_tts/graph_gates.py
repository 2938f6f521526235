"""The structural gates on the graph that is about to be compiled, whoever made it."""

from __future__ import annotations

import onnx_ir as ir

from contracts.verdicts import Measurement, Verdict
from gates.fp16_range import weight_range
from gates.operators import operators
from gates.static_shapes import static_shapes
from gates.vendor_limits import vendor_limits


def judge_structure(model: ir.Model) -> tuple[list[Verdict], list[Measurement]]:
    """Operators, shapes, versions, names and fp16 range of the weights of `model`; the vendor's lists as warnings."""
    weights, subnormal = weight_range(model)
    return [operators(model), static_shapes(model), weights], [subnormal, *vendor_limits(model)]
