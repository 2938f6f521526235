"""Count the axis of a CumSum from the front.

Before:  CumSum(x, -1), x of rank 3      After:  CumSum(x, 2)

The toolkit is wrong on a negative one, and nothing says so (-14 dB in the simulator, 72 dB with the same axis counted
from the front; measured, rknn-toolkit2 2.3.2, rk3588).

Preconditions: a constant axis, an input of known rank.

Exact: the same axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph_constants import add_constant
from surgery.interface import inferred, node_label
from surgery.matching import Matched, is_one_of
from surgery.weights import weight_of

CONSTANT_AXIS = "a constant axis of a CumSum"
KNOWN_RANK = "an input of known rank for a CumSum along a negative axis"

DECLARATION = Declaration(
    name="normalise_negative_axes",
    summary="the axis of a CumSum counted from the front",
    exactness=Exact("the same axis"),
    matches=(Matched("CumSum", irrelevant=dict.fromkeys(("exclusive", "reverse"), "says how, not along which axis")),),
    preconditions=(CONSTANT_AXIS, KNOWN_RANK),
)

_AXIS = 1
"""Input position."""


@dataclass(frozen=True)
class _Sum:
    """A CumSum, and its axis counted from the front, in the shape and type it had."""

    node: ir.Node
    axis: np.ndarray[tuple[int, ...], np.dtype[np.signedinteger]]


def normalise_negative_axes() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(is_one_of(node, DECLARATION.matches) for node in model.graph):
        return Rewritten(model, 0)
    copy = model.clone()
    known = inferred(copy)
    looked = [_look(node, known) for node in copy.graph if is_one_of(node, DECLARATION.matches)]
    sums = [found for found in looked if isinstance(found, _Sum)]
    refused = tuple(found for found in looked if isinstance(found, Refused))
    if not sums or refused:
        return Rewritten(model, 0, refused)
    for found in sums:
        name = f"{found.node.outputs[0].name}.{DECLARATION.name}"
        found.node.replace_input_with(_AXIS, add_constant(copy.graph, name, found.axis))
    return Rewritten(copy, hits=len(sums))


def _look(node: ir.Node, known: Mapping[str, ir.Value]) -> _Sum | Refused | None:
    """The plan for one node; None where its axis is counted from the front."""
    x, given = node.inputs[:2]
    axis = weight_of(given)
    if axis is None:
        return Refused(node_label(node), CONSTANT_AXIS, "a weight", f"'{given.name if given else ''}' is computed")
    if axis.size != 1 or axis.item() >= 0:
        return None
    shape = None if x is None else known.get(x.name or "", x).shape
    if shape is None:
        return Refused(node_label(node), KNOWN_RANK, "its shape", "none")
    return _Sum(node, np.asarray(axis + len(shape), axis.dtype)) if axis.item() >= -len(shape) else None
