"""What `rewrite_recurrent_outputs` refuses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.rewrite_recurrent_outputs import rewrite_recurrent_outputs
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.refusals import Refusal


def _gru(shape: Sequence[int | str] = (4, 1, 3), lengths: int | None = None, fed: bool = False) -> ir.Model:
    """A GRU of which the state is read; its sequence lengths are a weight, or an input."""
    names = ["x", "w", "r", "", "n" if fed or lengths is not None else ""]
    nodes = [helper.make_node("GRU", names, ["", "h"], "op", hidden_size=2)]
    inputs = [tensor("x", shape), *([tensor("n", [1], TensorProto.INT32)] if fed else [])]
    weights = [constant("w", np.ones((1, 6, 3))), constant("r", np.ones((1, 6, 2)))]
    given = [] if lengths is None else [constant("n", [lengths], np.int32)]
    return model(nodes, inputs, [tensor("h", [1, "b", 2])], [*weights, *given])


_WHOLE = "whole sequences where the last state of a GRU alone is read"

REFUSALS = (
    Refusal(
        rewrite_recurrent_outputs(),
        "static shapes of a GRU whose last state alone is read",
        "node 'op'",
        "None and (1, 6, 2)",
        lambda: _gru(("t", 1, 3)),
    ),
    Refusal(rewrite_recurrent_outputs(), _WHOLE, "node 'op'", "[3]", lambda: _gru(lengths=3)),
    Refusal(rewrite_recurrent_outputs(), _WHOLE, "node 'op'", "'n' is computed", lambda: _gru(fed=True)),
)
