"""Types and shapes of a graph's values, as far as ONNX's inference finds them."""

from __future__ import annotations

import logging

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

_LOGGER = logging.getLogger("onnx_ir.passes.common.shape_inference")


def infer_types(model: ir.Model) -> None:
    """Note the types and shapes of `model` on its values.

    Not strict: a node that inference fails on (MeanVarianceNormalization of opset 18 is one) leaves the others theirs.
    Where it gives up altogether, on a node that is no valid ONNX, nothing is noted and nothing printed.
    """
    heard = _LOGGER.disabled
    _LOGGER.disabled = True  # it would print a traceback
    try:
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    finally:
        _LOGGER.disabled = heard
