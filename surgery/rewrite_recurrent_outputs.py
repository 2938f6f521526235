"""Read every output of a GRU or LSTM that stands before one that is read.

Before:  GRU(x) -> -, Y_h                  After:  Y_h from Y: its last step forward, its first backward
Before:  LSTM(x) -> Y or -, -, Y_c         After:  _, Y_c = Split(Concat(Y_h, Y_c))
The toolkit has no type for an output that nothing reads ("meet unsupported elemtype: 0") and stops, except for the Y
of an LSTM. It takes the Concat and Split away again: the layer table holds the LSTM alone, at 69 to 72 dB
(measured in the simulator, rknn-toolkit2 2.3.2, rk3588).

Preconditions, of a GRU: static shapes, and no sequence lengths but the whole, for Y is zero behind a shorter sequence.

Exact: Y holds the state of every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import input_at
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of, opset_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.splice import Draft, splice, whole_numbers
from surgery.weights import weight_of

KNOWN_SHAPES = "static shapes of a GRU whose last state alone is read"
WHOLE_SEQUENCES = "whole sequences where the last state of a GRU alone is read"

_CELL = dict.fromkeys(
    ("activation_alpha", "activation_beta", "activations", "clip", "hidden_size"), "copied; what a step computes"
)
_TIME_FIRST = {"layout": "0: onnxruntime runs no other"}

LSTM = Matched("LSTM", required=_TIME_FIRST, irrelevant={**_CELL, "direction": "copied", "input_forget": "copied"})
GRU = Matched(
    "GRU", used=frozenset({"direction"}), required=_TIME_FIRST, irrelevant={**_CELL, "linear_before_reset": "copied"}
)

DECLARATION = Declaration(
    name="rewrite_recurrent_outputs",
    summary="a GRU's last state or an LSTM's cell that is read alone, taken from outputs the toolkit keeps",
    exactness=Exact("every step's state is in Y; two tensors joined and split are the same two"),
    after=frozenset({"normalise_empty_slots"}),
    matches=(LSTM, GRU),
    preconditions=(KNOWN_SHAPES, WHOLE_SEQUENCES),
)

_FIRST_OPSET = 10
"""From here Slice has its bounds as inputs (ONNX changelog)."""

_NUM_OUTPUTS_FROM = 18
"""From here a Split of equal parts states their number (ONNX changelog)."""

_WEIGHTS, _SEQUENCE_LENGTHS = 2, 4
"""Input positions, of both: the recurrent weights [directions, gates * hidden, hidden]."""

_LAST: Mapping[str, tuple[int, ...]] = {"forward": (-1,), "reverse": (0,), "bidirectional": (-1, 0)}
"""At which step each direction ends."""


@dataclass(frozen=True)
class _State:
    """The last state [directions, batch, hidden] of a GRU, behind so many steps."""

    steps: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Plan:
    """A GRU whose last state alone is read, or an LSTM, which has no `state` here, whose cell is."""

    node: ir.Node
    state: _State | None = None


def rewrite_recurrent_outputs() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_wanted, _look, _write)


def _write(plan: _Plan) -> None:
    if plan.state is None:
        _join_cell(plan.node)
    else:
        _take_state(plan.node, plan.state)


def _is_wanted(node: ir.Node) -> bool:
    if (
        not is_one_of(node, DECLARATION.matches)
        or opset_of(node) < _FIRST_OPSET
        or node.attributes.get_int("layout", 0) != 0
    ):
        return False
    if len(node.inputs) <= _WEIGHTS or _direction(node) not in _LAST:
        return False
    read = [_is_read(value) for value in node.outputs]
    if node.op_type == GRU.op:
        return read == [False, True]
    return len(read) > 2 and read[2] and not read[1]


def _direction(node: ir.Node) -> str:
    return node.attributes["direction"].as_string() if "direction" in node.attributes else "forward"


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _look(node: ir.Node) -> _Plan | Refused:
    if node.op_type == LSTM.op:
        return _Plan(node)
    sequence, recurrent = static_shape(node.inputs[0]), static_shape(node.inputs[_WEIGHTS])
    if sequence is None or recurrent is None or (len(sequence), len(recurrent)) != (3, 3):
        return Refused(node_label(node), KNOWN_SHAPES, "of its input and weights", f"{sequence} and {recurrent}")
    lengths = input_at(node, _SEQUENCE_LENGTHS)
    if lengths is not None:
        given = weight_of(lengths)
        if given is None or not np.all(given == sequence[0]):
            got = f"'{lengths.name}' is computed" if given is None else str(given.tolist())
            return Refused(node_label(node), WHOLE_SEQUENCES, f"sequence lengths of {sequence[0]}", got)
    return _Plan(node, _State(sequence[0], (recurrent[0], sequence[1], recurrent[2])))


def _join_cell(node: ir.Node) -> None:
    draft = Draft()
    draft.add(node.op_type, *node.inputs, outputs=3, copied=node.attributes)
    whole, state, cell = draft.nodes[0].outputs
    joined = draft.add("Concat", state, cell, axis=0)
    draft.add("Split", joined, outputs=2, axis=0, num_outputs=2 if opset_of(node) >= _NUM_OUTPUTS_FROM else None)
    made = [whole, state, draft.nodes[-1].outputs[1]]
    splice(node, draft.nodes, [new for old, new in zip(node.outputs, made, strict=True) if old.name], DECLARATION.name)


def _take_state(node: ir.Node, state: _State) -> None:
    """Y is [steps, directions, batch, hidden]."""
    draft = Draft()
    whole = draft.add(node.op_type, *node.inputs, copied=node.attributes)
    states = [
        draft.add(
            "Slice", whole, whole_numbers([step, place]), whole_numbers([step + 1, place + 1]), whole_numbers([0, 1])
        )
        for place, step in enumerate(last % state.steps for last in _LAST[_direction(node)])
    ]
    joined = states[0] if len(states) == 1 else draft.add("Concat", *states, axis=1)
    last_state = draft.add("Reshape", joined, whole_numbers(state.shape))
    made = [whole, last_state] if node.outputs[0].name else [last_state]
    splice(node, draft.nodes, made, DECLARATION.name)
