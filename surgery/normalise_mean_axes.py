"""Write a mean over axes that the toolkit mistakes as one that it takes.

Before:  ReduceMean(x [n, c, h, w]) over axes 2 and 3, keepdims 0
After:   the same with keepdims 1, and a Reshape to [n, c]
Before:  ReduceMean(x [1, ..]) over every axis, keepdims 1, as an output of the graph
After:   the same over every axis but the first

The toolkit makes a pool of the first that keeps the axes, so that an output has another shape, and whatever reads it
dies ("[ONNXRuntimeError] : 2"); of the second it keeps one axis. It is right as written here (73 and 85 dB), on other
axes and ranks, and on the other reductions (measured, rknn-toolkit2 2.3.2, rk3588).

A shape that is not known, or axes that are no constants, leave the node as it is.

Exact: the same numbers in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of, opset_of
from surgery.node_rewrites import rewrite_nodes
from surgery.reductions import keeps_axes, reduced, reduced_axes
from surgery.splice import Draft, splice, whole_numbers

DECLARATION = Declaration(
    name="normalise_mean_axes",
    summary="means over the last two of four axes, or over all, in a form that keeps its shape",
    exactness=Exact("the same numbers in another shape"),
    after=frozenset({"fold_constants"}),
    matches=(
        Matched(
            "ReduceMean",
            used=frozenset({"axes", "keepdims", "noop_with_empty_axes"}),
        ),
    ),
)

_RANK, _POOLED = 4, (2, 3)
"""What the toolkit makes a pool of."""


@dataclass(frozen=True)
class _Mean:
    """A mean: the axes to write, and the shape to give it behind (none: it has it)."""

    node: ir.Node
    axes: tuple[int, ...]
    shape: tuple[int, ...] | None


def normalise_mean_axes() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _write)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _write(mean: _Mean) -> None:
    draft = Draft()
    made = reduced(draft, "ReduceMean", mean.node.inputs[0], mean.axes, opset_of(mean.node))
    shaped = made if mean.shape is None else draft.add("Reshape", made, whole_numbers(mean.shape))
    splice(mean.node, draft.nodes, [shaped], DECLARATION.name)


def _look(node: ir.Node) -> _Mean | None:
    """The plan for one node; None where it stays as it is."""
    shape = static_shape(node.inputs[0]) if node.inputs else None
    axes = None if shape is None else reduced_axes(node, len(shape))
    if shape is None or axes is None or 0 in shape:
        return None
    if not keeps_axes(node):
        return _Mean(node, axes, shape[:2]) if (len(shape), axes) == (_RANK, _POOLED) else None
    whole = len(axes) == len(shape) > 1 and shape[0] == 1
    return _Mean(node, axes[1:], None) if whole and node.outputs[0].is_graph_output() else None
