"""Take a graph's weights off the list of its inputs.

Before: inputs x, w and an initializer w. After: the input x and the initializer w. Up to IR version 3 every weight is
listed among the inputs; from 4 on it may be, as a default that a caller can override (ONNX IR specification, Graphs).
An engine holds its weights, so that they are no inputs of it. The IR version is 4 at least then: 3 requires the list.

Exact: a caller who does not override a default computes with it before and after.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten

FIRST_WITHOUT_LIST = 4
"""Lowest IR version whose weights need not be inputs (ONNX IR specification, Graphs)."""

DECLARATION = Declaration(
    name="normalise_initializers",
    summary="weights that an old exporter lists among the inputs are weights only",
    exactness=Exact("a default that nobody overrides is what is computed with (ONNX IR specification, Graphs)"),
)


def normalise_initializers() -> Pass:
    """The pass; its hits are the weights that were listed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(value.is_initializer() for value in model.graph.inputs):
        return Rewritten(model, 0)
    model = model.clone()
    listed = [value for value in model.graph.inputs if value.is_initializer()]
    kept = [value for value in model.graph.inputs if not value.is_initializer()]
    model.graph.inputs.clear()
    model.graph.inputs.extend(kept)
    model.ir_version = max(model.ir_version, FIRST_WITHOUT_LIST)
    return Rewritten(model, hits=len(listed))
