"""Empty optional inputs and outputs: cut off behind, written out where the toolkit breaks on the gap.

Before:  Op(x, w, ""), Op(..) -> y, "", ""            After:  Op(x, w), Op(..) -> y
Before:  Slice(x, starts, ends, "", steps)            After:  axes 0, 1, .. written out
Before:  LSTM or GRU(x, w, r, "", ..) with more       After:  a bias of zeros
Before:  a nameless output before one with a name     After:  a name for it, which nothing reads

Measured with rknn-toolkit2 2.3.2 for rk3588: an empty input behind crashes it (bias of Conv and ConvTranspose, axes and
steps of Slice: SIGSEGV, SIGABRT, SIGFPE) or ends the build (LayerNormalization, Split), or does no harm (Gemm, Pad,
Dropout, Resize, LSTM); an empty output ends the build, one with a name that nothing reads does not. It takes the gap of
a Resize's roi and scales, a Dropout's ratio, a Pad's value, and the sequence lengths, first state and first cell of an
LSTM or GRU. A Clip's is filled by `normalise_clip_bounds`. onnxruntime 1.23 itself crashes (SIGSEGV) where an output of
a Split has no name.

Preconditions: recurrent weights of known shape where a bias is written, starts of known length where axes are.

Exact: the defaults of the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import defs

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import graph_of
from surgery.graph_constants import add_constant
from surgery.inferred import static_shape
from surgery.interface import fresh_name
from surgery.matching import ONNX_DOMAINS, Matched, is_one_of, opset_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes

KNOWN_WEIGHTS = "recurrent weights of known shape"
KNOWN_STARTS = "starts of known length"

_ANY_CELL = "a bias of zeros changes nothing whatever the cell does"
_RECURRENT = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "layout")

SLICE = Matched("Slice")
LSTM = Matched("LSTM", irrelevant=dict.fromkeys((*_RECURRENT, "input_forget"), _ANY_CELL))
GRU = Matched("GRU", irrelevant=dict.fromkeys((*_RECURRENT, "linear_before_reset"), _ANY_CELL))

DECLARATION = Declaration(
    name="normalise_empty_slots",
    summary="empty optional inputs and outputs cut off, or written out",
    exactness=Exact("the operators' defaults, written out"),
    after=frozenset({"fold_constants"}),
    matches=(SLICE, LSTM, GRU),
    preconditions=(KNOWN_WEIGHTS, KNOWN_STARTS),
)

_FILLED = 3
"""Input position of what is written out: the axes of a Slice, the bias of an LSTM or GRU."""


@dataclass(frozen=True)
class _Slots:
    """A node to change: how many inputs and outputs stay, outputs to name, and one input to fill."""

    node: ir.Node
    inputs: int
    outputs: int
    named: tuple[int, ...]
    fill: NDArray[np.generic] | None


def normalise_empty_slots() -> Pass:
    """The pass; its hits are the nodes it changed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _has_gap, _look, _write)


def _has_gap(node: ir.Node) -> bool:
    return any(value is None for value in node.inputs) or any(not value.name for value in node.outputs)


def _look(node: ir.Node) -> _Slots | Refused | None:
    fill = None
    inputs = _length(node.inputs)
    if is_one_of(node, (SLICE,)) and inputs > _FILLED and node.inputs[_FILLED] is None:
        fill = _axes(node)
    elif is_one_of(node, (LSTM, GRU)) and inputs > _FILLED and node.inputs[_FILLED] is None:
        fill = _bias(node)
    if isinstance(fill, Refused):
        return fill
    outputs = _length([value if value.name else None for value in node.outputs])
    if not outputs:
        return None
    kept = max([outputs, *(place + 1 for place in range(len(node.outputs)) if not _is_optional(node, place))])
    named = tuple(place for place in range(kept) if not node.outputs[place].name)
    if (inputs, kept) == (len(node.inputs), len(node.outputs)) and not named and fill is None:
        return None
    return _Slots(node, inputs, kept, named, fill)


def _length(values: Sequence[ir.Value | None]) -> int:
    """How many there are up to the last that is not empty."""
    return max((place for place, value in enumerate(values, 1) if value is not None), default=0)


def _is_optional(node: ir.Node, place: int) -> bool:
    """Whether ONNX lets the output be left out; of an operator that it does not know, none."""
    opset = opset_of(node)
    if node.domain not in ONNX_DOMAINS or not defs.has(node.op_type, opset, ""):
        return False
    formal = defs.get_schema(node.op_type, opset, "").outputs
    return place < len(formal) and formal[place].option == defs.OpSchema.FormalParameterOption.Optional


def _axes(node: ir.Node) -> NDArray[np.generic] | Refused:
    shape = static_shape(node.inputs[1])
    if shape is None or len(shape) != 1:
        return Refused(node_label(node), KNOWN_STARTS, "a shape [n]", "none" if shape is None else str(list(shape)))
    return np.arange(shape[0], dtype=np.int64)


def _bias(node: ir.Node) -> NDArray[np.generic] | Refused:
    """[directions, 2 k H] from the recurrent weights [directions, k H, H]."""
    weight = node.inputs[2]
    shape = static_shape(weight)
    if weight is None or shape is None or len(shape) != 3:
        got = "none" if shape is None else str(list(shape))
        return Refused(node_label(node), KNOWN_WEIGHTS, "a shape [directions, gates * hidden, hidden]", got)
    return np.zeros((shape[0], 2 * shape[1]), np.float32 if weight.dtype is None else weight.dtype.numpy())


def _write(slots: _Slots) -> None:
    node = slots.node
    graph = graph_of(node)
    node.resize_inputs(slots.inputs)
    node.resize_outputs(slots.outputs)
    stem = next(value.name for value in node.outputs if value.name)
    for place in slots.named:
        node.outputs[place].name = fresh_name(graph, f"{stem}.{DECLARATION.name}.{place}")
    if slots.fill is not None:
        name = fresh_name(graph, f"{stem}.{DECLARATION.name}.filled")
        node.replace_input_with(_FILLED, add_constant(graph, name, slots.fill))
