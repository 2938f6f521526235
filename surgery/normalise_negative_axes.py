"""Count the axis of a CumSum or GatherElements from the front.

Before:  CumSum(x, -1), x of rank 3                    After:  CumSum(x, 2)
Before:  GatherElements(x, i), axis -1, rank 3         After:  axis 2

The toolkit is wrong on a negative axis of a CumSum, and nothing says so (-14 dB in the simulator, 72 dB with the same
axis counted from the front); of a GatherElements it dies ("[ONNXRuntimeError] : 1"). Of every other operator with an
axis it takes negative ones (measured, rknn-toolkit2 2.3.2, rk3588).

Preconditions: a constant axis; an input of known rank where it is negative.

Exact: the same axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import graph_of
from surgery.graph_constants import add_constant
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.weights import weight_of

CONSTANT_AXIS = "a constant axis of a CumSum"
KNOWN_RANK = "an input of known rank beside a negative axis"

DECLARATION = Declaration(
    name="normalise_negative_axes",
    summary="count the axis of a CumSum or GatherElements from the front",
    exactness=Exact("the same axis"),
    after=frozenset({"fold_constants"}),
    matches=(
        Matched("CumSum", irrelevant=dict.fromkeys(("exclusive", "reverse"), "says how, not along which axis")),
        Matched("GatherElements", used=frozenset({"axis"})),
    ),
    preconditions=(CONSTANT_AXIS, KNOWN_RANK),
)

_AXIS = 1
"""Input position, of a CumSum."""


@dataclass(frozen=True)
class _Counted:
    """A node, and its axis counted from the front, in the shape and type it had where it is an input."""

    node: ir.Node
    axis: NDArray[Any]


def normalise_negative_axes() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _write)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _write(counted: _Counted) -> None:
    node = counted.node
    if "axis" in node.attributes:
        node.attributes["axis"] = ir.AttrInt64("axis", counted.axis.item())
    else:
        name = f"{node.outputs[0].name}.{DECLARATION.name}"
        node.replace_input_with(_AXIS, add_constant(graph_of(node), name, counted.axis))


def _look(node: ir.Node) -> _Counted | Refused | None:
    """The plan for one node; None where its axis is counted from the front."""
    x, given = (*node.inputs, None, None)[:2]
    if node.op_type == "GatherElements":
        stated = node.attributes.get("axis")
        axis = np.array(0 if stated is None else stated.as_int())
    else:
        weight = weight_of(given)
        if weight is None:
            return Refused(node_label(node), CONSTANT_AXIS, "a weight", f"'{given.name if given else ''}' is computed")
        axis = weight
    if axis.size != 1 or axis.item() >= 0:
        return None
    shape = None if x is None else x.shape
    if shape is None:
        return Refused(node_label(node), KNOWN_RANK, "its shape", "none")
    return _Counted(node, np.asarray(axis + len(shape), axis.dtype)) if axis.item() >= -len(shape) else None
