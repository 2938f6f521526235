"""The gates on the graph that is about to be compiled, whoever made it. `compile` owes them on its own graph."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from contracts.verdicts import Measurement, Verdict
from gates.fp16_range import activation_range, weight_range
from gates.operators import operators
from gates.static_shapes import static_shapes
from gates.vendor_limits import vendor_limits
from rknn_tts.carried import Feed


def judge_graph(model: ir.Model, feeds: Sequence[Feed]) -> tuple[list[Verdict], list[Measurement]]:
    """Structure and fp16 range of `model`; `feeds` are real inputs for the activations."""
    weights, subnormal = weight_range(model)
    verdicts = [operators(model), static_shapes(model), weights, activation_range(model, feeds)]
    return verdicts, [subnormal, *vendor_limits(model)]
