"""Fold arithmetic with constants that change nothing.

Before:  x + 0,  x - 0,  x * 1,  x / 1,  x ^ 1         After:  x
Before:  x + k, x * k and the like, k [1, C, T]         nothing, unless k is all zeros, all ones

Exporters write them where a speaker's or a flow's condition is absent, as tensors as large as x: 24 of the Piper
decoder's nodes. The compiler drops them itself (measured, 2.3.2: the same engine); the passes that look for a layer
behind a layer see it where they are gone.

Left alone: what makes x larger or of another shape, what is not float32, and what gives an input or output of the graph
under another name (an Identity would stand there as well).

Exact: every number stays; of a zero, x + 0 loses the sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.constant_operands import may_have_operand, operand_of
from surgery.declaration import Declaration, Exact, Pass
from surgery.matching import Matched
from surgery.node_rewrites import let_stand, rewrite_in_turn

NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0, "Pow": 1.0}
"""The other operand that gives a number back."""

COMMUTES = frozenset({"Add", "Mul"})

OPERATORS = tuple(Matched(op) for op in NEUTRAL)

DECLARATION = Declaration(
    name="fold_neutral_operands",
    summary="sums with zero and products with one go away",
    exactness=Exact("x + 0 = x * 1 = x"),
    after=frozenset({"decompose_functions", "fold_constants", "normalise_double", "normalise_float32"}),
    matches=OPERATORS,
)


@dataclass(frozen=True)
class _Plan:
    """A node that gives `value`."""

    node: ir.Node
    value: ir.Value


def fold_neutral_operands() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(
        DECLARATION,
        lambda model: rewrite_in_turn(model, lambda node: may_have_operand(node, OPERATORS), _plan, _apply),
    )


def _plan(node: ir.Node) -> _Plan | None:
    operand = operand_of(node, OPERATORS)
    if operand is None or (operand.place == 1 and node.op_type not in COMMUTES):
        return None
    if operand.values.ndim or operand.values != NEUTRAL[node.op_type]:
        return None
    value = operand.value
    if node.outputs[0].is_graph_output() and (value.producer() is None or value.is_graph_output()):
        return None
    return _Plan(node, value)


def _apply(plan: _Plan) -> None:
    let_stand(plan.value, plan.node)
