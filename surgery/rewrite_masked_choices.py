"""Multiply by a mask, and add what stands for masked scores, instead of choosing between the two.

Before:  Where(m == 0, k, x): m of zeros and ones, k one number, x the scores of an attention
After:   x * m + (m - 1) * -k, the second part once for all x with the same m and k

It keeps attention on the NPU. The compiler does Equal on the CPU, and of large scores Softmax and the Transposes around
it too; without the choice it does none of them there. Text encoder and durations of Piper's joe-medium (2 heads, 6
layers), layers on the CPU and modelled ms, rk3588 (measured, 2.3.2):

    tokens      128       192       384       512
    before   4, 11.7   4, 19.1   22, 158   22, 273
    after    3,  8.32  3, 11.6    3, 24.4   3, 35.3

The simulator is right with both, at the same SNR. A stage lists it, which can say that its scores are finite.

Left alone: a mask that the graph does not show to hold zeros and ones; a k that is not one number within fp16's range;
scores of another type than float32, or of unknown rank.

Exact: for finite x, x * 1 + 0 is x, and x * 0 + k is k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph import graph_of, input_of
from surgery.interface import insert_behind
from surgery.mask_values import ORDERS, SHAPES, SHAPING, array_of, is_plain
from surgery.matching import Matched, is_one_of
from surgery.naming import node_stem
from surgery.node_rewrites import rewrite_nodes
from surgery.scopes import drop_unused
from surgery.splice import Draft, constant, name_drafted, splice

_WHERE, _EQUAL = Matched("Where"), Matched("Equal")

_TO = "bool to float makes zeros and ones of any float type"

DECLARATION = Declaration(
    name="rewrite_masked_choices",
    summary="scores times a mask, plus what stands for masked ones, instead of a choice between the two",
    exactness=Exact("x * 1 + 0 is x, and x * 0 + k is k, of finite numbers"),
    after=frozenset({"fold_constants", "normalise_float32", "rewrite_relative_attention", "rewrite_safe_softmax"}),
    matches=(_WHERE, _EQUAL, Matched("Cast", irrelevant={"to": _TO, "saturate": _TO}), Matched("Mul"), *SHAPING),
)

LARGEST = 65504.0
"""Of a number that stands for masked scores: fp16's largest."""


@dataclass(frozen=True)
class _Plan:
    """A choice: the node, the mask whose zeros take `number`, and the scores that its ones keep."""

    node: ir.Node
    mask: ir.Value
    number: float
    scores: ir.Value


def rewrite_masked_choices() -> Pass:
    """The pass; its hits are the choices."""

    def rewrite(model: ir.Model) -> Rewritten:
        added: dict[tuple[ir.Value, float], ir.Value] = {}
        done = rewrite_nodes(model, _is_wanted, _plan, lambda plan: _write(plan, added))
        if done.hits:
            drop_unused(done.model.graph)
        return done

    return Pass(DECLARATION, rewrite)


def _is_wanted(node: ir.Node) -> bool:
    return is_one_of(node, (_WHERE,))


def _plan(node: ir.Node) -> _Plan | None:
    chooses, taken, scores = node.inputs
    mask, number = _masking(chooses), array_of(taken)
    if mask is None or number is None or scores is None:
        return None
    if number.size != 1 or not abs(float(number.reshape(-1)[0])) <= LARGEST:  # NaN is no such number either
        return None
    if {mask.dtype, scores.dtype} != {ir.DataType.FLOAT} or mask.shape is None or scores.shape is None:
        return None
    if number.ndim > max(len(mask.shape), len(scores.shape)):
        return None
    return _Plan(node, mask, float(number.reshape(-1)[0]), scores)


def _masking(chooses: ir.Value | None) -> ir.Value | None:
    """The mask whose zeros `chooses` is true for."""
    node = None if chooses is None else chooses.producer()
    if node is None or not is_one_of(node, (_EQUAL,)):
        return None
    for mask, zero in (node.inputs, tuple(reversed(node.inputs))):
        number = array_of(zero)
        if number is not None and number.size == 1 and not number.any() and mask is not None and _is_truth(mask):
            return mask
    return None


def _is_truth(value: ir.Value) -> bool:
    """Whether `value` holds zeros and ones, as the graph shows: what is made of booleans, and products of it."""
    todo, seen = [value], set[ir.Value]()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        known, node = array_of(part), part.producer()
        if known is not None:
            if not np.isin(known, (0, 1)).all():
                return False
        elif part.dtype is ir.DataType.BOOL or (node is not None and is_plain(node, ORDERS)):
            continue
        elif node is not None and is_plain(node, {"Mul"}):
            todo += [read for read in node.inputs if read is not None]
        elif node is not None and is_plain(node, SHAPES | {"Cast"}):
            todo.append(input_of(node))
        else:
            return False
    return True


def _write(plan: _Plan, added: dict[tuple[ir.Value, float], ir.Value]) -> None:
    key = (plan.mask, plan.number)
    if key not in added:
        added[key] = _for_masked(plan)
    draft = Draft()
    kept = draft.add("Mul", plan.scores, plan.mask)
    splice(plan.node, draft.nodes, [draft.add("Add", kept, added[key])], DECLARATION.name)


def _for_masked(plan: _Plan) -> ir.Value:
    """(m - 1) * -k, right behind the mask."""
    graph, draft = graph_of(plan.node), Draft()
    less = draft.add("Sub", plan.mask, constant([1.0]))
    made = draft.add("Mul", less, constant([-plan.number]))
    source = plan.mask
    for number, node in enumerate(draft.nodes):
        stem = f"{plan.node.outputs[0].name}.{DECLARATION.name}.masked.{number}"
        name_drafted(graph, node, f"{node_stem(plan.node)}/{DECLARATION.name}.masked.{number}", stem)
        insert_behind(graph, node, source)
        source = node.outputs[0]
    return made
