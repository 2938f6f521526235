"""Fold a BatchNormalization with constant statistics into the layer before it.

Before:  BatchNormalization(Layer(x; W, b); scale, B, mean, var)
After:   Layer(x; s W, s (b - mean) + B),   s = scale / sqrt(var + epsilon)

Layer: Conv, ConvTranspose, or Gemm with beta = 1, by constants; its channels are on axis 1, as the normalisation's are.

Left alone: one that trains, or is asked for its running statistics; one that stands before a layer, for its padding is
zero; a layer whose output has other readers, or whose weights would leave fp16's range (`surgery.linear_layers`).

The compiler folds one behind a Conv or ConvTranspose itself. Where a pass writes the layer as another and a shuffle,
as `rewrite_long_transposed_conv` does, it passes over the tensor once more for one behind that (measured, 2.3.2).

Exact: the same affine step for each channel, before the sum instead of after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.declaration import Declaration, Exact, Pass
from surgery.graph import input_at
from surgery.linear_layers import CONV, CONV_TRANSPOSE, GEMM, Array, Layer, layer_of
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import let_stand, rewrite_in_turn
from surgery.weights import weight_of

BATCH_NORMALIZATION = Matched(
    "BatchNormalization",
    used=frozenset({"epsilon"}),
    required={"training_mode": "0"},
    irrelevant={"momentum": "of the running statistics, which are not asked for"},
)

DECLARATION = Declaration(
    name="fold_batch_normalization",
    summary="batch normalisations by constants go into the weights of the layer before them",
    exactness=Exact("the same affine step for each channel, before the sum instead of after"),
    after=frozenset(
        {
            "decompose_functions",
            "fold_constants",
            "fold_dequantised_weights",
            "fold_neutral_operands",
            "normalise_double",
            "normalise_float32",
        }
    ),
    matches=(BATCH_NORMALIZATION, CONV, CONV_TRANSPOSE, GEMM),
    pays_on=EVERY_TARGET,
)

_EPSILON = 1e-5
"""Where none is stated (ONNX operator specification)."""

_ATTRIBUTES = frozenset({"epsilon", "momentum", "training_mode"})
"""Before opset 9 there is `spatial`, which says what is normalised."""


@dataclass(frozen=True)
class _Plan:
    """A normalisation of `value` that goes, since the layer before it does the same."""

    node: ir.Node
    value: ir.Value
    layer: Layer


def fold_batch_normalization() -> Pass:
    """The pass; its hits are normalisations."""
    return Pass(
        DECLARATION,
        lambda model: rewrite_in_turn(model, lambda node: is_one_of(node, (BATCH_NORMALIZATION,)), _plan, _apply),
    )


def _plan(node: ir.Node) -> _Plan | None:
    value = input_at(node, 0)
    made = None if value is None else value.producer()
    if value is None or made is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    layer, step = layer_of(made), _affine(node)
    if layer is None or step is None or layer.made_axis != 1 - layer.rank or len(step[0]) != layer.channels(made=True):
        return None
    scaled = layer.scaled(step[0], made=True)
    shifted = None if scaled is None else scaled.shifted(step[1])
    return None if shifted is None else _Plan(node, value, shifted)


def _affine(node: ir.Node) -> tuple[Array, Array] | None:
    """What the normalisation multiplies each channel by, and adds to it then."""
    trains = node.attributes.get_int("training_mode", 0) != 0 or any(value.name for value in node.outputs[1:])
    constants = [weight_of(value) for value in node.inputs[1:]]
    known = [values.astype(np.float64) for values in constants if values is not None and values.ndim == 1]
    if trains or not _ATTRIBUTES.issuperset(node.attributes) or len(known) != 4 or len({*map(len, known)}) != 1:
        return None
    scale, shift, mean, variance = known
    spread = variance + node.attributes.get_float("epsilon", _EPSILON)
    if not np.all(spread > 0):
        return None
    factors = scale / np.sqrt(spread)
    return factors, shift - mean * factors


def _apply(plan: _Plan) -> None:
    plan.layer.write(DECLARATION.name)
    let_stand(plan.value, plan.node)
