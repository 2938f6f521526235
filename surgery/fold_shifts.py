"""Fold an addition of constants into the bias of a layer before it.

Before:  Layer(x; W, b) + t                    After:  Layer(x; W, b + t)
Before:  (Layer(x; W, b) + a) + t              After:  Layer(x; W, b + t) + a

Layer: Conv, ConvTranspose, or Gemm with beta = 1, by constants. t is one number, or one for each channel of the output,
added or subtracted. Nothing else reads what is on the way, which may be sums of any tensors.

Left alone: a constant that varies along another axis; c - Layer(x), of which the weights change sign; what stands
before a layer, for its padding is zero and not t; and a MatMul, which has no bias (the compiler makes one of the sum).

The compiler folds a sum behind a Conv or Gemm itself; behind a ConvTranspose, and beyond another sum, it passes over
the tensor once more. A Mul with an Add behind it is one affine step to it, which it does fold behind a ConvTranspose:
where `fold_scales` takes the Mul, this pass must take the Add (measured, 2.3.2).

Exact: the same sum in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.constant_operands import may_have_operand, operand_of
from surgery.declaration import Declaration, Exact, Pass
from surgery.linear_layers import CONV, CONV_TRANSPOSE, FARTHEST, GEMM, Array, Layer, layer_of
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import let_stand, rewrite_in_turn

SUMS = (Matched("Add"), Matched("Sub"))

DECLARATION = Declaration(
    name="fold_shifts",
    summary="additions of constants go into the bias of the layer before them",
    exactness=Exact("the same sum in another order"),
    after=frozenset(
        {
            "decompose_functions",
            "fold_constants",
            "fold_dequantised_weights",
            "fold_scales",
            "normalise_double",
            "normalise_float32",
        }
    ),
    matches=(CONV, CONV_TRANSPOSE, GEMM, *SUMS),
    pays_on=EVERY_TARGET,
)


@dataclass(frozen=True)
class _Plan:
    """An addition to `value` that goes, since the layer before it has the constant in its bias."""

    node: ir.Node
    value: ir.Value
    layer: Layer


def fold_shifts() -> Pass:
    """The pass; its hits are additions and subtractions."""
    return Pass(
        DECLARATION,
        lambda model: rewrite_in_turn(model, lambda node: may_have_operand(node, SUMS), _plan, _apply),
    )


def _plan(node: ir.Node) -> _Plan | None:
    operand = operand_of(node, SUMS)
    if operand is None or (node.op_type == "Sub" and operand.place == 1):
        return None
    layer = _shifted(operand.value, -operand.values if node.op_type == "Sub" else operand.values)
    return None if layer is None else _Plan(node, operand.value, layer)


def _shifted(value: ir.Value, shifts: Array, left: int = FARTHEST) -> Layer | None:
    """The layer that makes `value`, or a part of the sum that it is, with `shifts` in its bias; None where there is
    none, or others read its output."""
    node = value.producer()
    if not left or node is None or len(value.uses()) != 1 or value.is_graph_output() or value is not node.outputs[0]:
        return None
    layer = layer_of(node)
    if layer is not None:
        each = layer.per_channel(shifts, made=True)
        return None if each is None else layer.shifted(each)
    if not is_one_of(node, SUMS) or len(node.inputs) != 2 or node.attributes:
        return None
    for place, summand in enumerate(node.inputs):
        signed = -shifts if node.op_type == "Sub" and place == 1 else shifts
        found = None if summand is None else _shifted(summand, signed, left - 1)
        if found is not None:
            return found
    return None


def _apply(plan: _Plan) -> None:
    plan.layer.write(DECLARATION.name)
    let_stand(plan.value, plan.node)
