"""Graphs of one Split, for the pass that takes empty parts out of it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx import helper

from tests.gates.small_graphs import constant, model, tensor


def parts(lengths: Sequence[int], axis: int = 1, opset: int = 17, outputs: Sequence[int] = ()) -> ir.Model:
    """x [2, 8, 3], split into `lengths` and joined again backwards; the parts `outputs` are outputs too."""
    names = [f"p{number}" for number in range(len(lengths))]
    if opset < 13:
        split = helper.make_node("Split", ["x"], names, "cut", axis=axis, split=list(lengths))
    else:
        split = helper.make_node("Split", ["x", "lengths"], names, "cut", axis=axis)
    nodes = [
        split,
        helper.make_node("Concat", names[::-1], ["joined"], "join", axis=axis),
        helper.make_node("Relu", ["joined"], ["y"], "bend"),
    ]
    made = [tensor("y", [2, 8, 3])]
    made += [tensor(names[number], [2, lengths[number], 3]) for number in outputs]
    weights = [] if opset < 13 else [constant("lengths", lengths, "int64")]
    return model(nodes, [tensor("x", [2, 8, 3])], made, weights, opset=opset)
