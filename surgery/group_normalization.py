"""GroupNormalization as an InstanceNormalization over its groups; the toolkit breaks on the operator itself.

With x [N, C, *S] read as [N, G, C/G * prod(S)], each group is one channel of an instance normalisation. Opset 18 scales
each group, opset 21 each channel (ONNX operator specification).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.splice import Draft, constant, whole_numbers

EPSILON = 1e-5
"""ONNX's default."""


def group_normalization(node: ir.Node, draft: Draft, per_channel: bool) -> ir.Value:
    """Draft what `node` computes; `per_channel` says whether its scale and bias are [C] (opset 21) or [G] (18)."""
    given, scale, bias = node.inputs
    assert given is not None
    groups = node.attributes["num_groups"].as_int()
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else EPSILON
    kind = given.dtype or ir.DataType.FLOAT
    grouped = draft.add("Reshape", given, whole_numbers([0, groups, -1]))
    ones, zeros = constant(np.ones(groups), kind), constant(np.zeros(groups), kind)
    factors = (ones, zeros) if per_channel else (scale, bias)
    made = draft.add("InstanceNormalization", grouped, *factors, epsilon=epsilon)
    back = draft.add("Reshape", made, _shape(given, draft))
    if not per_channel:
        return back
    rank = 3 if given.shape is None else len(given.shape)
    column = whole_numbers([-1, *[1] * (rank - 2)])
    scaled = draft.add("Mul", back, draft.add("Reshape", scale, column))
    return draft.add("Add", scaled, draft.add("Reshape", bias, column))


def _shape(value: ir.Value, draft: Draft) -> ir.Value:
    if value.shape is not None and value.shape.is_static():
        return whole_numbers(list(value.shape.numpy()))
    return draft.add("Shape", value)
