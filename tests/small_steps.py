"""A streaming step that is small enough to write down: attention over the cached keys and values and its own codes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.gates.small_graphs import constant, proto, tensor

HEADS, KEPT, SIZE, CODES = 2, 7, 3, 5
"""Heads, codes that the cache remembers, numbers in a head's key, codes of a step."""

CHANNELS = HEADS * SIZE
NUMEL = 2 * HEADS * KEPT * SIZE
SAMPLES = CODES * CHANNELS
"""Of audio: what attention gives, as it is."""


def small_step(seam: str = "hidden", four_axes: bool = False, unlike: bool = False) -> onnx.ModelProto:
    """The step; its keys and values are what it takes.

    Args:
        seam: name of what it takes.
        four_axes: whether that is [1, C, 1, B].
        unlike: whether a second attention sees its own codes and one more only.
    """
    constants = [
        constant("by_head", [HEADS, SIZE, CODES], np.int64),
        constant("kept", [HEADS, KEPT, SIZE], np.int64),
        constant("flat", [-1], np.int64),
        constant("sound", [1, 1, SAMPLES], np.int64),
        *(constant(name, [value], np.int64) for name, value in (("start", 0), ("half", NUMEL // 2), ("end", NUMEL))),
        *(
            constant(name, [value], np.int64)
            for name, value in (("axis", 1), ("behind", CODES), ("last", KEPT + CODES))
        ),
        constant("one", [1 + CODES], np.int64),
    ]
    kind = TensorProto.INT64 if seam == "codes" else TensorProto.FLOAT
    nodes = [
        helper.make_node("Cast", [seam], ["taken"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["taken", "by_head"], ["channels_first"]),
        helper.make_node("Transpose", ["channels_first"], ["own"], perm=[0, 2, 1]),
    ]
    for name, start, stop in (("keys", "start", "half"), ("values", "half", "end")):
        nodes += [
            helper.make_node("Slice", ["cache", start, stop], [f"{name}_flat"]),
            helper.make_node("Reshape", [f"{name}_flat", "kept"], [f"{name}_old"]),
            helper.make_node("Concat", [f"{name}_old", "own"], [name], axis=1),
            helper.make_node("Slice", [name, "behind", "last", "axis"], [f"{name}_new"]),
            helper.make_node("Reshape", [f"{name}_new", "flat"], [f"{name}_kept"]),
        ]
    nodes += [
        helper.make_node("Transpose", ["keys"], ["keys_across"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["own", "keys_across"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "values"], ["mixed"]),
        helper.make_node("Concat", ["keys_kept", "values_kept"], ["cache_out"], axis=0),
    ]
    mixed = "mixed"
    if unlike:
        nodes += [
            helper.make_node("Slice", ["values", "start", "one", "axis"], ["near"]),
            helper.make_node("Slice", ["scores", "start", "one", "two"], ["near_scores"]),
            helper.make_node("Softmax", ["near_scores"], ["near_weights"], axis=-1),
            helper.make_node("MatMul", ["near_weights", "near"], ["more"]),
            helper.make_node("Add", ["mixed", "more"], ["both"]),
        ]
        constants.append(constant("two", [2], np.int64))
        mixed = "both"
    nodes.append(helper.make_node("Reshape", [mixed, "sound"], ["audio"]))
    shape = [1, CHANNELS, 1, CODES] if four_axes else [1, CHANNELS, CODES]
    inputs = [tensor(seam, shape, kind), tensor("cache", [NUMEL])]
    return proto(nodes, inputs, [tensor("audio", [1, 1, SAMPLES]), tensor("cache_out", [NUMEL])], constants)
