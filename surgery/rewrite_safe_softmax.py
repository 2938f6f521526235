"""Ask for wholly masked rows without IsNaN, which has no kernel on the board.

torch exports attention under a mask so that a row whose every score is minus infinity gives 0, not NaN (torch.onnx
since 2.9; a row of minus infinities is 0/0 in a softmax).

Before: p = Softmax(x, axis); y = Where(IsNaN(p), 0, p).
After: the same with Less(ReduceMax(x, axis), -5e3) in the place of IsNaN(p); and y = p where x is the sum of scores and
a constant mask that leaves every row a score (a causal mask), for then no row is NaN.

Preconditions for a place to be rewritten: opset 13 or later, where Softmax has one axis; before that, the last axis.
Elsewhere IsNaN stays, and the structural gate names it.

Exact where scores are above -5e3 and finite: a softmax is NaN exactly where its row's largest value is minus infinity.
Once `rewrite_mask_constants` has made -1e4 of the minus infinities, the question has the same answer.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.mask_paths import FAR, array_of, is_plain
from surgery.matching import ONNX_DOMAINS, Matched
from surgery.splice import Draft, constant, splice, whole_numbers

DECLARATION = Declaration(
    name="rewrite_safe_softmax",
    summary="ask for wholly masked rows by their largest score, not by IsNaN of the softmax",
    exactness=Exact("a softmax is NaN exactly where its row's largest score is minus infinity"),
    matches=(Matched("Softmax", used=frozenset({"axis"})), Matched("IsNaN"), Matched("Where"), Matched("Add")),
)

_ONE_AXIS_SINCE = 13
"""Before it Softmax flattens all axes from `axis` on (ONNX operator changelog)."""

_AXES_AS_INPUT_SINCE = 18
"""Before it the axes of ReduceMax are an attribute (ONNX operator changelog)."""


def rewrite_safe_softmax() -> Pass:
    """The pass; its hits are the IsNaN nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not _plan(model):
            return Rewritten(model, 0)
        model = model.clone()
        plan = _plan(model)
        for asking, softmax in plan:
            if _leaves_a_score(softmax):
                _drop(asking)
            else:
                _ask_anew(asking, softmax, _opset(model))
        common.RemoveUnusedNodesPass()(model)
        return Rewritten(model, hits=len(plan))

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


def _axis(softmax: ir.Node, model: ir.Model) -> int | None:
    """The one axis of the softmax; None where it may have several."""
    if _opset(model) >= _ONE_AXIS_SINCE:
        return softmax.attributes.get_int("axis", -1)
    return -1 if softmax.attributes.get_int("axis", 1) == -1 else None


def _opset(model: ir.Model) -> int:
    return max(model.graph.opset_imports.get(domain, 0) for domain in ONNX_DOMAINS)


def _leaves_a_score(softmax: ir.Node) -> bool:
    """Whether the softmax is of a sum with a constant that masks no row of the last axis wholly."""
    axis = softmax.attributes.get_int("axis", -1)
    added = softmax.inputs[0].producer() if softmax.inputs[0] is not None else None
    if axis != -1 or added is None or not is_plain(added, {"Add"}):
        return False
    masks = [array for value in added.inputs if (array := array_of(value)) is not None and array.ndim]
    return len(masks) == 1 and bool((masks[0].max(axis=-1) > -FAR).all())


def _drop(asking: ir.Node) -> None:
    """Nothing is NaN: what Where would take instead is not taken."""
    for where, index in tuple(asking.outputs[0].uses()):
        if is_plain(where, {"Where"}) and index == 0:
            draft = Draft()
            splice(where, draft.nodes, [draft.add("Identity", where.inputs[2])], DECLARATION.name)


def _ask_anew(asking: ir.Node, softmax: ir.Node, opset: int) -> None:
    scores, axis = softmax.inputs[0], softmax.attributes.get_int("axis", -1)
    assert scores is not None
    draft = Draft()
    if opset < _AXES_AS_INPUT_SINCE:
        largest = draft.add("ReduceMax", scores, axes=[axis], keepdims=1)
    else:
        largest = draft.add("ReduceMax", scores, whole_numbers([axis]), keepdims=1)
    less = draft.add("Less", largest, constant(-FAR, scores.dtype or ir.DataType.FLOAT))
    asking.outputs[0].shape = None  # one entry a row from now on
    splice(asking, draft.nodes, [less], DECLARATION.name)
