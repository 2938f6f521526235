"""Types and shapes of a graph's values, as far as ONNX's inference finds them."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass


def infer_types(model: ir.Model) -> None:
    """Note the types and shapes of `model` on its values.

    Not strict: a node that inference fails on (MeanVarianceNormalization of opset 18 is one) leaves the others theirs.
    """
    ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
