"""Keep the toolkit from taking channels for zero of which it computes an absolute value.

Its step `sparse_weight` knows how low and high the values of some operators are. Where a channel of a layer with
weights can never be positive, it takes it for zero if an activation is behind: rightly for a Relu, wrongly for an Abs
and for a LeakyRelu of negative slope, whose engines then hold 0 there, silently (measured, 2.3.2, rk3562, rk3566,
rk3576, rk3588: |-relu(x) - 1|, at least 1, is 0). Layers are Conv, Gemm, MatMul, BatchNormalization, and the Mul and
Add that it makes one of; no rule that can be switched off, no word in the log.

Before:  Abs(v), or LeakyRelu(v) with alpha < 0; v <= 0 on some channels for every feed, by `surgery.value_ranges`
After:   Abs(v * s), or LeakyRelu(v * s); s = alpha (-1 for Abs) on those channels, 1 on the others

On those channels v * s is the result already, and positive. The compiler takes the factors into the layer before, at no
cost; of a BatchNormalization, or a layer that others read too, it makes one more layer.

Whether there is such a layer is not asked: a compiler that finds one more would be wrong again, and who takes the
absolute value of what is never positive has one. Where the values are not bounded the toolkit is right too.

Left alone: channels that are 0 for every feed; what is not float32, or of unknown rank.

Exact: LeakyRelu is v from 0 on, and alpha * v below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph import input_at
from surgery.linear_layers import Array
from surgery.node_rewrites import rewrite_nodes
from surgery.splice import Draft, constant, splice
from surgery.value_ranges import BOUNDED, Ranges, is_absolute, slope_of

DECLARATION = Declaration(
    name="rewrite_zeroed_absolutes",
    summary="channels that cannot be positive, of which the toolkit makes zero, are negated before an absolute value",
    exactness=Exact("LeakyRelu is v from 0 on, and alpha * v below"),
    after=frozenset(
        {
            "decompose_functions",
            "fold_constants",
            "fuse_affine_steps",
            "normalise_float32",
            "normalise_opset",
            "rewrite_affine_as_depthwise",
            "rewrite_sines",
            "rewrite_transposed_conv",
        }
    ),
    matches=BOUNDED,
)

CLOSE = 1e-7
"""A channel that is positive by less counts as one that is not: 1e-8 does for the toolkit, 1e-7 does not (measured).
Where the slope is -1, the sign of a number is nothing to its absolute value."""


@dataclass(frozen=True)
class _Plan:
    """What `node` reads is multiplied by `factors` before."""

    node: ir.Node
    factors: Array


def rewrite_zeroed_absolutes() -> Pass:
    """The pass; its hits are the activations."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    ranges = Ranges()
    return rewrite_nodes(model, is_absolute, lambda node: _plan(node, ranges), _write)


def _plan(node: ir.Node, ranges: Ranges) -> _Plan | None:
    value, slope = input_at(node, 0), slope_of(node)
    if value is None or value.dtype is not ir.DataType.FLOAT or value.shape is None or slope is None:
        return None
    found = ranges.of(value)
    zeroed = (found.high <= (CLOSE if slope == -1.0 else 0.0)) & (found.low < -CLOSE)
    if not np.any(zeroed):
        return None
    rank = len(value.shape)
    return _Plan(node, np.where(zeroed, slope, 1.0).reshape((1,) * (rank - zeroed.ndim) + zeroed.shape))


def _write(plan: _Plan) -> None:
    draft = Draft()
    scaled = draft.add("Mul", plan.node.inputs[0], constant(plan.factors))
    made = draft.add(plan.node.op_type, scaled, copied=plan.node.attributes)
    splice(plan.node, draft.nodes, [made], DECLARATION.name)
