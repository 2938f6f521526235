"""An export as the toolkit sees it, and feeds in the shapes that it has there."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from converters.stages import StageExport
from surgery.preflight import preflight
from tests.onnx_runs import Array


def finished_model(export: StageExport, target: str = "rk3588") -> ir.Model:
    """The graph of `export` behind all passes for `target`."""
    model = export.model
    for bound in (*export.passes, *preflight(target, export.cuts(target))):
        model = bound.rewrite(model).model
    return model


def reshaped(model: ir.Model, feed: Mapping[str, Array]) -> dict[str, Array]:
    """What `model` takes of `feed`, with its unit axes."""
    shapes = {str(value.name): value.shape.numpy() for value in model.graph.inputs if value.shape is not None}
    return {name: feed[name].reshape(shape) for name, shape in shapes.items()}
