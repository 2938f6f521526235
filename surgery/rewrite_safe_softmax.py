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

import numpy as np
import onnx_ir as ir
from onnx_ir.convenience import replace_nodes_and_values
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph_constants import add_constant
from surgery.mask_paths import FAR, array_of, is_plain
from surgery.matching import Matched

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
                _ask_anew(asking, softmax, model.graph.opset_imports.get("", _AXES_AS_INPUT_SINCE))
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
    if model.graph.opset_imports.get("", _ONE_AXIS_SINCE) >= _ONE_AXIS_SINCE:
        return softmax.attributes.get_int("axis", -1)
    return -1 if softmax.attributes.get_int("axis", 1) == -1 else None


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
            _short_cut(where)


def _short_cut(where: ir.Node) -> None:
    identity = ir.node("Identity", [where.inputs[2]], name=f"{where.name}_{DECLARATION.name}")
    assert where.graph is not None
    replace_nodes_and_values(where.graph, where, [where], [identity], where.outputs, identity.outputs)


def _ask_anew(asking: ir.Node, softmax: ir.Node, opset: int) -> None:
    graph, scores = asking.graph, softmax.inputs[0]
    assert graph is not None
    assert scores is not None
    name = f"{asking.name or asking.outputs[0].name}_{DECLARATION.name}"
    axis = softmax.attributes.get_int("axis", -1)
    dtype = scores.dtype or ir.DataType.FLOAT
    limit = add_constant(graph, f"{name}_limit", np.array(-FAR, dtype.numpy()), dtype)
    if opset < _AXES_AS_INPUT_SINCE:
        largest = ir.node("ReduceMax", [scores], {"axes": [axis], "keepdims": 1}, name=f"{name}_largest")
    else:
        axes = add_constant(graph, f"{name}_axes", np.array([axis], np.int64), ir.DataType.INT64)
        largest = ir.node("ReduceMax", [scores, axes], {"keepdims": 1}, name=f"{name}_largest")
    less = ir.node("Less", [largest.outputs[0], limit], name=name)
    largest.outputs[0].name = f"{name}_largest"
    replace_nodes_and_values(graph, asking, [asking], [largest, less], asking.outputs, less.outputs)
    less.outputs[0].shape = None  # one entry a row now
