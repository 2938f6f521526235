"""Multiply by the inverse of a constant instead of dividing by it.

Before:  Div(x, c), c a constant
After:   Mul(x, 1 / c)

It pays on no target, for the compiler makes the same Mul of both, whether c is one number or one for each channel.
Modelled ms between two convolutions, [1, 128, 1200], with either (measured, 2.3.2): .749 on rk3588 and rk3576, .979 on
rk3562, 4.440 on rk3566 and rk3568.

So it runs where it is asked for by name (`rknn-tts surgery --pass rewrite_constant_divisions`), for a board, or another
toolkit, whose Div is wrong or slow; and by itself nowhere. No board was available here.

Left alone: a constant that is divided, one with a 0 in it or whose inverse fp16 does not hold in full precision, one
that makes the tensor larger, what is not float32.

Exact: x / c, but for the rounding of 1 / c (half a unit in the last place of float32).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.affine_steps import SMALLEST_HALF
from surgery.constant_operands import may_have_operand, operand_of
from surgery.declaration import Declaration, Exact, Pass
from surgery.graph import input_at
from surgery.linear_layers import LARGEST_HALF, Array
from surgery.matching import Matched
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import put_in_place
from surgery.splice import Draft, constant
from surgery.weights import weight_of

DIV = Matched("Div")

DECLARATION = Declaration(
    name="rewrite_constant_divisions",
    summary="a division by a constant as a product with its inverse, which the compiler makes of it anyway",
    exactness=Exact("x / c is x times 1 / c, but for the rounding of the inverse"),
    after=frozenset(
        {
            "fold_constants",
            "fold_neutral_operands",
            "fold_scales",
            "fuse_affine_steps",
            "fuse_instance_norm",
            "fuse_layer_norm",
            "normalise_float32",
            "rewrite_means_as_pools",
            "rewrite_sines",
        }
    ),
    matches=(DIV,),
    pays_on=frozenset(),
)


@dataclass(frozen=True)
class _Plan:
    """`node` multiplies by `inverse` from now on."""

    node: ir.Node
    inverse: Array


def rewrite_constant_divisions() -> Pass:
    """The pass; its hits are the divisions."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_be, _plan, _write))


def _may_be(node: ir.Node) -> bool:
    return may_have_operand(node, (DIV,))


def _plan(node: ir.Node) -> _Plan | None:
    operand, values = operand_of(node, (DIV,)), weight_of(input_at(node, 1))
    if operand is None or values is None or operand.place != 0 or not np.all(values):
        return None
    if operand.value.dtype is not ir.DataType.FLOAT:
        return None
    inverse = 1.0 / values.astype(np.float64)
    size = np.abs(inverse)
    return _Plan(node, inverse) if np.all((size >= SMALLEST_HALF) & (size <= LARGEST_HALF)) else None


def _write(plan: _Plan) -> None:
    draft = Draft()
    made = draft.add("Mul", plan.node.inputs[0], constant(plan.inverse))
    put_in_place(plan.node, (), draft, made, DECLARATION.name)
