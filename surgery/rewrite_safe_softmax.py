"""Ask for wholly masked rows without IsNaN, which has no kernel on the board.

torch exports attention under a mask so that a row whose every score is minus infinity gives 0, not NaN (torch.onnx
since 2.9; a row of minus infinities is 0/0 in a softmax).

Before: p = Softmax(x, axis); y = Where(IsNaN(p), 0, p).
After: the same with Less(ReduceMax(x, axis), -5e3) in the place of IsNaN(p). Where x is the sum of scores and a mask m,
ReduceMax(m, axis) is asked; where y @ v is all that y is for, Where(rows, 0, p @ v) stands in its place, so that the
toolkit still makes one attention of the rest (exSDPAttention; measured, 2.3.2, rk3588). And y = p where m is a constant
that leaves every row a score (a causal mask), for then no row is NaN. Of any other constant m the rows are a constant.

Before: Where(ReduceMax(m) == -inf, 0, p), the body of ONNX's own Attention; a minus infinity leaves fp16.
After: Where(ReduceMax(m) < -5e3, 0, p).

Preconditions for a place to be rewritten: opset 13 or later, where Softmax has one axis; before that, the last axis.
Elsewhere IsNaN stays, and the structural gate names it.

Exact where scores are above -5e3 and finite: a softmax is NaN exactly where its row's largest value is minus infinity.
Once `rewrite_mask_constants` has made -1e4 of the minus infinities, the question has the same answer.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.fold_constants import folded
from surgery.mask_values import FAR, array_of, is_mask, is_plain
from surgery.matching import Matched, opset_of
from surgery.reductions import reduced
from surgery.splice import Draft, constant, splice

DECLARATION = Declaration(
    name="rewrite_safe_softmax",
    summary="find the wholly masked rows of an attention by their largest score, not by IsNaN or minus infinity",
    exactness=Exact("a softmax is NaN exactly where its row's largest score is minus infinity"),
    after=frozenset({"fold_constants", "normalise_opset"}),
    matches=(
        Matched("Softmax", used=frozenset({"axis"})),
        Matched("IsNaN"),
        Matched("Equal"),
        Matched("ReduceMax", irrelevant=dict.fromkeys(("axes", "keepdims", "noop_with_empty_axes"), "stays as it is")),
        Matched("Cast", irrelevant=dict.fromkeys(("to", "saturate"), "a softmax in another type is one")),
        Matched("Where"),
        Matched("Add"),
        Matched("MatMul"),
    ),
)

_ONE_AXIS_SINCE = 13
"""Before it Softmax flattens all axes from `axis` on (ONNX operator changelog)."""


def rewrite_safe_softmax() -> Pass:
    """The pass; its hits are the IsNaN and Equal nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not _plan(model) and not _infinite(model):
            return Rewritten(model, 0)
        model = model.clone()
        plan, infinite = _plan(model), _infinite(model)
        for equal in infinite:
            _compare(equal)
        for asking, softmax in plan:
            if _leaves_a_score(softmax):
                _drop(asking)
            else:
                _ask_anew(asking, softmax, opset_of(model))
        common.RemoveUnusedNodesPass()(model)
        return Rewritten(folded(model), hits=len(plan) + len(infinite))

    return Pass(DECLARATION, rewrite)


def _plan(model: ir.Model) -> list[tuple[ir.Node, ir.Node]]:
    """Every IsNaN of a Softmax of one axis, with that Softmax."""
    found = []
    for node in model.graph:
        value = node.inputs[0] if is_plain(node, {"IsNaN"}) else None
        softmax = value.producer() if value is not None else None
        if softmax is not None and is_plain(softmax, {"Softmax"}) and _axis(softmax, model) is not None:
            found.append((node, softmax))
    return found


def _infinite(model: ir.Model) -> list[ir.Node]:
    """Every Equal that asks which largest values of a mask are minus infinity, to leave those out of a softmax."""
    found = []
    for node in model.graph:
        if is_plain(node, {"Equal"}) and _largest(node) is not None:
            uses = list(node.outputs[0].uses())
            if uses and all(index == 0 and _is_of_softmax(where) for where, index in uses):
                found.append(node)
    return found


def _largest(equal: ir.Node) -> ir.Value | None:
    """The ReduceMax that `equal` compares with minus infinity."""
    for largest, limit in (equal.inputs, tuple(reversed(equal.inputs))):
        node, number = None if largest is None else largest.producer(), array_of(limit)
        if node is not None and is_plain(node, {"ReduceMax"}) and number is not None:
            return largest if number.size == 1 and number.item() == -np.inf else None
    return None


def _is_of_softmax(where: ir.Node) -> bool:
    """Whether `where` takes a softmax, in whatever type, where its condition is false."""
    made = where.inputs[2].producer() if is_plain(where, {"Where"}) and where.inputs[2] is not None else None
    while made is not None and is_plain(made, {"Cast"}) and made.inputs[0] is not None:
        made = made.inputs[0].producer()
    return made is not None and is_plain(made, {"Softmax"})


def _compare(equal: ir.Node) -> None:
    largest = _largest(equal)
    assert largest is not None
    draft = Draft()
    shape = next(value.shape for value in equal.inputs if value is not largest and value is not None)
    limit = constant(np.full(shape.numpy() if shape is not None else (), -FAR), largest.dtype or ir.DataType.FLOAT)
    splice(equal, draft.nodes, [draft.add("Less", largest, limit)], DECLARATION.name)


def _axis(softmax: ir.Node, model: ir.Model) -> int | None:
    """The one axis of the softmax; None where it may have several."""
    if opset_of(model) >= _ONE_AXIS_SINCE:
        return softmax.attributes.get_int("axis", -1)
    return -1 if softmax.attributes.get_int("axis", 1) == -1 else None


def _leaves_a_score(softmax: ir.Node) -> bool:
    """Whether the softmax is of the last axis of a sum with a constant that masks no row wholly."""
    mask = array_of(_mask_of(softmax))
    return mask is not None and mask.ndim > 0 and bool((mask.max(axis=-1) > -FAR).all())


def _drop(asking: ir.Node) -> None:
    """Nothing is NaN: what Where would take instead is not taken."""
    for where, index in tuple(asking.outputs[0].uses()):
        if is_plain(where, {"Where"}) and index == 0:
            _read_instead(where.outputs[0], where.inputs[2])


def _read_instead(old: ir.Value, new: ir.Value | None) -> None:
    """Read `new` where `old` was read; an Identity between a softmax and its product would keep them from being one."""
    node = old.producer()
    assert node is not None
    assert new is not None
    if old.is_graph_output():
        draft = Draft()
        result = draft.add("Identity", new)
        splice(node, draft.nodes, [result], DECLARATION.name)
    else:
        old.replace_all_uses_with(new)


def _ask_anew(asking: ir.Node, softmax: ir.Node, opset: int) -> None:
    axis = softmax.attributes.get_int("axis", -1)
    asked = _mask_of(softmax) or softmax.inputs[0]
    assert asked is not None
    wheres = [where for where, index in asking.outputs[0].uses() if axis == -1 and index == 0]
    draft = Draft()
    largest = reduced(draft, "ReduceMax", asked, [axis], opset)
    less = draft.add("Less", largest, constant(-FAR, asked.dtype or ir.DataType.FLOAT))
    asking.outputs[0].shape = None  # one entry a row from now on
    splice(asking, draft.nodes, [less], DECLARATION.name)
    for where in wheres:
        _move_behind_product(where)


def _mask_of(softmax: ir.Node) -> ir.Value | None:
    """The one mask of a softmax of the last axis of scores + mask; None where there may be others, or none."""
    added = softmax.inputs[0].producer() if softmax.inputs[0] is not None else None
    if softmax.attributes.get_int("axis", -1) != -1 or added is None or not is_plain(added, {"Add"}):
        return None
    for mask, scores in (added.inputs, tuple(reversed(added.inputs))):
        if is_mask(mask) and _is_unmasked(scores):
            return mask
    return None


def _is_unmasked(value: ir.Value | None) -> bool:
    """Whether `value` is a product, scaled maybe, or an input: nothing was masked in it."""
    while value is not None and (node := value.producer()) is not None:
        if is_plain(node, {"MatMul"}):
            return True
        if not is_plain(node, {"Mul", "Div", "Cast"}) or (len(node.inputs) == 2 and array_of(node.inputs[1]) is None):
            return False
        value = node.inputs[0]
    return value is not None and value.is_graph_input()


def _move_behind_product(where: ir.Node) -> None:
    """Where(rows, 0, p) @ v is Where(rows, 0, p @ v)."""
    uses = list(where.outputs[0].uses())
    zero = array_of(where.inputs[1])
    if not is_plain(where, {"Where"}) or zero is None or zero.size != 1 or zero.any() or len(uses) != 1:
        return
    product, index = uses[0]
    if index or not is_plain(product, {"MatMul"}) or where.outputs[0].is_graph_output():
        return
    draft = Draft()
    whole = draft.add("MatMul", where.inputs[2], product.inputs[1])
    kept = draft.add("Where", where.inputs[0], where.inputs[1], whole)
    splice(product, draft.nodes, [kept], DECLARATION.name)
