"""Multiply by a mask, and add what stands for masked scores, instead of choosing between the two.

Before:  Where(m == 0, k, x), or Where(m == 1, x, k): m of zeros and ones, k one number, x the scores of an attention
After:   x * m + (m - 1) * -k, the second part once for all x with the same m and k; of a k of 0, x * m

Before:  Where(m == 1, k, x), or Where(m == 0, x, k)
After:   x * (1 - m) + m * k

m is what the condition compares with a number, or negates, or the condition itself, as float32.

It keeps attention on the NPU. Where a choice is ahead, the compiler does the comparison on the CPU, and of large scores
Softmax and the Transposes around it too. Text encoder and durations of Piper's joe-medium (2 heads, 6 layers), layers
on the CPU and modelled ms, rk3588 (measured, 2.3.2):

    tokens      128       192       384       512
    before   4, 11.7   4, 19.1   22, 158   22, 273
    after    3,  8.32  3, 11.6    3, 24.4   3, 35.3

Two attentions (2 heads of 64, 384 tokens; the same) by what chooses, modelled ms: m == 0 of floats 49.8, 2.33; m == 0
of whole numbers 45.9, 8.25; And of booleans 33.9, 2.28; a mask of keys alone 14.1, 1.86; a constant one 33.9, 1.87.
1 - m as a product and a sum would give 37.1. The simulator is as near to fp32 as before.

On rk3562, rk3576 and rk3588 the toolkit's rule fuse_exmatmul_add_mul_exsoftmax13_exmatmul_to_sdpa crashes in such an
attention where nothing else is added to the scores, and the engine is built without it (2.3.2; not in 2.5.0).

Left alone: choices that no Softmax is behind, which cost no more than the product and may keep an infinity from being
read; an x that the graph does not show to be finite; a k that is not one number within fp16's range; scores of another
type than float32, or of sizes that are not known.

Exact: for finite x, x * 1 + 0 is x, and x * 0 + k is k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.choice_masks import CONDITIONS, ChoiceMask, choice_mask
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.finite_values import FINITE, is_finite
from surgery.fold_constants import folded
from surgery.graph import graph_of
from surgery.inferred import static_shape
from surgery.interface import insert_behind
from surgery.mask_values import SHAPES, array_of, is_plain
from surgery.matching import Matched, is_one_of
from surgery.naming import node_stem
from surgery.node_rewrites import rewrite_nodes
from surgery.scopes import drop_unused
from surgery.splice import Draft, constant, name_drafted, splice

_WHERE = Matched("Where")

DECLARATION = Declaration(
    name="rewrite_masked_choices",
    summary="scores times a mask, plus what stands for masked ones, instead of a choice between the two",
    exactness=Exact("x * 1 + 0 is x, and x * 0 + k is k, of finite numbers"),
    after=frozenset(
        {
            "fold_constants",
            "normalise_float32",
            "rewrite_mask_constants",
            "rewrite_relative_attention",
            "rewrite_safe_softmax",
        }
    ),
    matches=tuple({matched.op: matched for matched in (*CONDITIONS, *FINITE, _WHERE)}.values()),
    pays_on=EVERY_TARGET,
)

LARGEST = 65504.0
"""Of a number that stands for masked scores: fp16's largest."""

_TO_SOFTMAX = SHAPES | {"Add", "Cast", "Div", "Mul", "Sub", "Where"}
"""What may stand between a choice and its Softmax: other masks, biases, a temperature."""


@dataclass(frozen=True)
class _Plan:
    """A choice: the node, the mask that it goes by, and at which place it takes scores; the others become `number`.

    Scores stay where the mask is one if `keeps_ones`, or else where it is zero.
    """

    node: ir.Node
    mask: ir.Value
    keeps_ones: bool
    number: float
    scores: int


_Made = dict[tuple[ir.Value, str, float], ir.Value]
"""What was made of a mask already, by what it is: choices have it in common."""


def rewrite_masked_choices() -> Pass:
    """The pass; its hits are the choices."""

    def rewrite(model: ir.Model) -> Rewritten:
        made: _Made = {}
        done = rewrite_nodes(model, _is_wanted, _plan, lambda plan: _write(plan, made))
        if not done.hits:
            return done
        drop_unused(done.model.graph)
        constant_too = any(array_of(mask) is not None for mask, _, _ in made)
        return replace(done, model=folded(done.model)) if constant_too else done

    return Pass(DECLARATION, rewrite)


def _is_wanted(node: ir.Node) -> bool:
    return is_one_of(node, (_WHERE,))


def _plan(node: ir.Node) -> _Plan | None:
    condition, *branches = node.inputs
    numbers = [_number(value) for value in branches]
    if condition is None or (numbers[0] is None) is (numbers[1] is None):
        return None
    of_number = 0 if numbers[0] is not None else 1
    number, scores = numbers[of_number], branches[1 - of_number]
    if number is None or scores is None or scores.dtype is not ir.DataType.FLOAT or array_of(scores) is not None:
        return None
    if not _is_of_softmax(node) or not is_finite(scores):
        return None
    mask = choice_mask(condition)
    if not _are_broadcast(node, mask, scores):
        return None
    return _Plan(node, mask.value, mask.of_ones is (of_number == 1), number, 2 - of_number)


def _number(value: ir.Value | None) -> float | None:
    """The one number within fp16's range that the constant `value` holds; None where it is something else."""
    held = array_of(value)
    if held is None or not held.size or not (held == held.flat[0]).all() or not abs(held.flat[0]) <= LARGEST:
        return None
    return float(held.flat[0])


def _are_broadcast(node: ir.Node, mask: ChoiceMask, scores: ir.Value) -> bool:
    """Whether mask and scores alone have the sizes of the choice: a condition or a number may have more."""
    sizes = [static_shape(value) for value in (mask.value, scores, node.outputs[0])]
    if any(size is None for size in sizes):
        return False
    of_mask, of_scores, of_choice = (size or () for size in sizes)
    return np.broadcast_shapes(of_mask, of_scores) == of_choice


def _is_of_softmax(node: ir.Node) -> bool:
    """Whether a Softmax comes of `node`, with only scores on the way."""
    todo, seen = [node], set[ir.Node]()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        readers = [reader for made in part.outputs for reader, _ in made.uses()]
        if any(is_plain(reader, {"Softmax"}) for reader in readers):
            return True
        todo += [reader for reader in readers if is_plain(reader, _TO_SOFTMAX)]
    return False


def _write(plan: _Plan, made: _Made) -> None:
    draft = Draft()
    scores = draft.add("Mul", plan.node.inputs[plan.scores], _kept(plan, made))
    if plan.number:
        scores = draft.add("Add", scores, _added(plan, made))
    splice(plan.node, draft.nodes, [scores], DECLARATION.name)


def _kept(plan: _Plan, made: _Made) -> ir.Value:
    """One where scores stay, zero where they do not."""
    ones = _mask(plan, made)
    return ones if plan.keeps_ones else _behind(plan, made, ("kept", 0.0), "Sub", constant([1.0]), ones)


def _added(plan: _Plan, made: _Made) -> ir.Value:
    """The number where scores do not stay, zero where they do."""
    ones = _mask(plan, made)
    if not plan.keeps_ones:
        return _behind(plan, made, ("masked", plan.number), "Mul", ones, constant([plan.number]))
    less = _behind(plan, made, ("less", 0.0), "Sub", ones, constant([1.0]))
    return _behind(plan, made, ("masked.less", plan.number), "Mul", less, constant([-plan.number]))


def _mask(plan: _Plan, made: _Made) -> ir.Value:
    """The mask as float32."""
    if plan.mask.dtype is ir.DataType.FLOAT:
        return plan.mask
    return _behind(plan, made, ("mask", 0.0), "Cast", plan.mask, to=int(ir.DataType.FLOAT))


def _behind(
    plan: _Plan, made: _Made, what: tuple[str, float], op: str, *inputs: ir.Value, **attributes: Any
) -> ir.Value:
    """What a node `op` makes of the mask, right behind what it reads."""
    key = (plan.mask, *what)
    if key not in made:
        graph, draft = graph_of(plan.node), Draft()
        made[key] = draft.add(op, *inputs, **attributes)
        name = f"{DECLARATION.name}.{what[0]}"
        (node,) = draft.nodes
        name_drafted(graph, node, f"{node_stem(plan.node)}/{name}", f"{plan.node.outputs[0].name}.{name}")
        insert_behind(graph, node, next((value for value in inputs if value.producer() is not None), plan.mask))
    return made[key]
