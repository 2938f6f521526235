"""Fold a multiplication by constants into the weights before it or behind it.

Before:  s * Layer(x; W, b)                    After:  Layer(x; s W, s b)        by channels of the output
Before:  Layer(s * x; W, b)                    After:  Layer(x; W s, b)          by channels of the input
Before:  (a + b) / 3 -> LeakyRelu -> Layer     After:  a + b -> LeakyRelu -> Layer with W / 3

Layer: Conv, ConvTranspose, Gemm, or MatMul by constants; they are linear, and what they pad with, zero, is zero times
s too. s is one number, or one for each channel. On its way it passes an activation that is positively homogeneous
(Relu, LeakyRelu and PRelu: f(s x) = s f(x)) where it is above zero, a Reshape and the like where it is one number, and,
backwards, an Add or Sub, whose two sides (or whose constant) it scales both.

Backwards, nothing else reads what is on the way. Forwards, every reader of the scaled value is such a layer, or passes
s on to some; what was scaled may have other readers. Whatever else (Tanh, Softmax, a residual sum behind it, an output
of the graph) keeps the multiplication, and so does one that would take weights out of fp16's range, or so far below its
smallest normal number that a channel's weights lose precision (`surgery.linear_layers`), and the factor of a Gelu or
HardSwish that is spelled out, without which the compiler does not know the rest (`surgery.spelled_activations`).

The compiler folds a product beside one Conv or MatMul itself. It does not through an activation or a sum, before a
ConvTranspose or several layers, nor behind a ConvTranspose: a pass over the tensor each (measured, 2.3.2: in the Piper
decoder, the mean of three residual blocks, which divides by 3 before a LeakyRelu and a ConvTranspose). A Div by
constants is a Mul to it, at the same price.

Exact: the same products, scaled before they are summed instead of after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.constant_operands import may_have_operand, operand_of
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph import input_of
from surgery.linear_layers import FARTHEST, LAYERS, Array, Layer, keeps_half, layer_of, replace_weight
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import let_stand, rewrite_in_turn
from surgery.spelled_activations import SPELLED, is_spelled
from surgery.weights import weight_of

MUL, DIV = Matched("Mul"), Matched("Div")
SCALES = (MUL, DIV)

_ANY = "f(s x) = s f(x) for s > 0, whatever the slope below zero"
HOMOGENEOUS = (Matched("Relu"), Matched("LeakyRelu", irrelevant={"alpha": _ANY}), Matched("PRelu"))

_MOVED = "the same numbers in any layout, each times the same one"
LAYOUTS = (
    Matched("Flatten", irrelevant={"axis": _MOVED}),
    Matched("Identity"),
    Matched("Reshape", irrelevant={"allowzero": _MOVED}),
    Matched("Squeeze", irrelevant={"axes": _MOVED}),
    Matched("Transpose", irrelevant={"perm": _MOVED}),
    Matched("Unsqueeze", irrelevant={"axes": _MOVED}),
)

SUMS = (Matched("Add"), Matched("Sub"))

DECLARATION = Declaration(
    name="fold_scales",
    summary="multiplications and divisions by constants go into the weights before or behind them",
    exactness=Exact("linear layers, positively homogeneous activations: the same products, scaled before the sum"),
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
    matches=(*LAYERS, *HOMOGENEOUS, *LAYOUTS, *SUMS[1:], *SPELLED),
    pays_on=EVERY_TARGET,
)


@dataclass(frozen=True)
class _Constant:
    """A constant of a sum, in its place among the node's inputs, scaled."""

    node: ir.Node
    place: int
    values: Array


_Part = Layer | _Constant
"""What takes a scale in, with it in."""


@dataclass(frozen=True)
class _Plan:
    """A multiplication of `value` that goes, since `parts` take its scale in; one before it, or one behind it."""

    node: ir.Node
    value: ir.Value
    parts: list[_Part]


def fold_scales() -> Pass:
    """The pass; its hits are multiplications and divisions."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_in_turn(model, lambda node: may_have_operand(node, SCALES), _plan, _apply)


def _plan(node: ir.Node) -> _Plan | None:
    operand = None if is_spelled(node) else operand_of(node, SCALES)
    if operand is None or (node.op_type == "Div" and operand.place == 1) or not np.all(operand.values):
        return None
    values = operand.values.astype(np.float64)
    factors = 1.0 / values if node.op_type == "Div" else values
    parts = _before(operand.value, factors)
    if parts is None:
        parts = _behind(node.outputs[0], factors)
    return None if parts is None else _Plan(node, operand.value, parts)


def _before(value: ir.Value, factors: Array, left: int = FARTHEST) -> list[_Part] | None:
    """What makes `value`, each times `factors`; None where something of it cannot be."""
    node = value.producer()
    if not left or node is None or len(value.uses()) != 1 or value.is_graph_output() or value is not node.outputs[0]:
        return None
    layer = layer_of(node)
    if layer is not None:
        return _scaled(layer, factors, made=True)
    if _passes(node, factors):
        return _before(input_of(node), factors, left - 1)
    if not is_one_of(node, SUMS) or len(node.inputs) != 2 or node.attributes:
        return None
    parts: list[_Part] = []
    for place, summand in enumerate(node.inputs):
        values = weight_of(summand)
        if summand is None:
            return None
        if values is None:
            found = _before(summand, factors, left - 1)
        else:
            found = _scaled_constant(node, place, values, factors)
        if found is None:
            return None
        parts.extend(found)
    return parts if any(isinstance(part, Layer) for part in parts) else None


def _behind(value: ir.Value, factors: Array, left: int = FARTHEST) -> list[_Part] | None:
    """What reads `value`, which loses `factors`, with them; None where something reads it that cannot take them."""
    if value.is_graph_output() or not value.uses() or not left:
        return None
    parts: list[_Part] = []
    for node, place in value.uses():
        if place or node.graph is not value.graph:  # a nested graph captures it
            return None
        layer = layer_of(node)
        found = None
        if layer is not None:
            found = _scaled(layer, factors, made=False)
        elif _passes(node, factors):
            found = _behind(node.outputs[0], factors, left - 1)
        if found is None:
            return None
        parts.extend(found)
    return parts


def _passes(node: ir.Node, factors: Array) -> bool:
    """Whether the node gives its first input, times `factors`, as its output times them."""
    if is_one_of(node, HOMOGENEOUS):
        return bool(np.all(factors > 0))
    return is_one_of(node, LAYOUTS) and factors.ndim == 0


def _scaled(layer: Layer, factors: Array, *, made: bool) -> list[_Part] | None:
    each = layer.per_channel(factors, made)
    scaled = None if each is None else layer.scaled(each, made)
    return None if scaled is None else [scaled]


def _scaled_constant(node: ir.Node, place: int, values: Array, factors: Array) -> list[_Part] | None:
    """The constant `values` of a sum, scaled; None where it would become larger, or fp16 does not hold it as well."""
    if values.dtype != np.float32:
        return None
    scaled = values * factors
    if scaled.size > max(values.size, factors.size) or not keeps_half(values.reshape(1, -1), scaled.reshape(1, -1)):
        return None
    return [_Constant(node, place, scaled.astype(np.float32))]


def _apply(plan: _Plan) -> None:
    for part in plan.parts:
        if isinstance(part, Layer):
            part.write(DECLARATION.name)
        else:
            replace_weight(part.node, part.place, part.values, DECLARATION.name)
    let_stand(plan.value, plan.node)
