"""The structural gates on the graph that is about to be compiled, whoever made it."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from contracts.errors import Refusal
from contracts.verdicts import Measurement, Verdict
from gates.fp16_range import weight_range
from gates.graphs import with_shapes
from gates.hardware_fields import hardware_fields
from gates.operators import operators
from gates.relative_shifts import relative_shifts
from gates.static_shapes import static_shapes
from gates.vendor_limits import vendor_limits


def judge_structure(
    model: ir.Model, target: str | None = None, accepted: Collection[str] = ()
) -> tuple[list[Verdict], list[Measurement]]:
    """Operators, shapes, versions, names, shifted rows and fp16 range of the weights of `model`; the vendor's lists as
    warnings.

    With a `target` also the fields of its hardware, but for the REGTASK keys in `accepted`.
    """
    weights, subnormal = weight_range(model)
    shaped = _shaped(model)
    warnings = [] if shaped is None else vendor_limits(shaped)
    fields = [] if target is None or shaped is None else [hardware_fields(shaped, target, accepted)]
    typed = model if shaped is None else shaped
    structure = [operators(typed), static_shapes(model, shaped), relative_shifts(typed)]
    return [*structure, *fields, weights], [subnormal, *warnings]


def _shaped(model: ir.Model) -> ir.Model | None:
    """`model` with its shapes, inferred once for all; None where it is no valid ONNX, which `static_shapes` names."""
    try:
        return with_shapes(model)
    except Refusal:
        return None
