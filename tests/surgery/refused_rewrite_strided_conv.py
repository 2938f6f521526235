"""Graphs that break one precondition of `rewrite_strided_conv` each."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import helper

from surgery.conv_axes import EVERY_AXIS, EXPLICIT_PADS, STATIC_LENGTH
from surgery.rewrite_strided_conv import CONSTANT_WEIGHTS, rewrite_strided_conv
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import one_node
from tests.surgery.refusals import Refusal


def strided(shape: list[int | str] | None = None, **attributes: Any) -> ir.Model:
    """A Conv `c` of kernel 4 and stride 9 that is rewritten but for `shape` or `attributes`."""
    return one_node("Conv", shape or [1, 2, 100], [3, 2, 4], **{"strides": [9], **attributes})


def computed_weights() -> ir.Model:
    """Weights that depend on an input."""
    nodes = [
        helper.make_node("Mul", ["w", "scale"], ["scaled"], "mul"),
        helper.make_node("Conv", ["x", "scaled"], ["y"], "c", strides=[9], kernel_shape=[4]),
    ]
    inputs = [tensor("x", [1, 2, 100]), tensor("scale", [1])]
    return model(nodes, inputs, [tensor("y", [1, 3, 11])], [constant("w", np.ones((3, 2, 4)))])


def weights_as_input() -> ir.Model:
    """Weights that whoever runs the graph may replace."""
    made = strided()
    made.graph.inputs.append(made.graph.initializers["w"])
    return made


def unknown_weights() -> ir.Model:
    """Weights that are an input without sizes, and no kernel_shape."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "c", strides=[9])]
    return model(nodes, [tensor("x", [1, 2, 100]), tensor("w", [3, 2, "k"])], [tensor("y", [1, 3, "t"])])


REFUSALS = tuple(
    Refusal(rewrite_strided_conv(), precondition, "c", got, build)
    for precondition, got, build in (
        (STATIC_LENGTH, "the input 'x' has none", lambda: strided([1, 2, "t"])),
        (STATIC_LENGTH, "the weights 'w' has none", unknown_weights),
        (EXPLICIT_PADS, "auto_pad SAME_UPPER", lambda: strided(auto_pad="SAME_UPPER")),
        (EXPLICIT_PADS, "auto_pad SAME_LOWER", lambda: strided(auto_pad="SAME_LOWER")),
        (EVERY_AXIS, "strides for another", lambda: strided(strides=[9, 9])),
        (EVERY_AXIS, "dilations, pads for another", lambda: strided(dilations=[1, 1], pads=[1])),
        (EVERY_AXIS, "kernel for another", lambda: strided(kernel_shape=[4, 4])),
        (EVERY_AXIS, "strides below 1", lambda: strided(strides=[0])),
        (EVERY_AXIS, "dilations below 1", lambda: strided(dilations=[0])),
        (CONSTANT_WEIGHTS, "stride 9 and weights 'scaled' that are computed", computed_weights),
        (CONSTANT_WEIGHTS, "stride 9 and weights 'w' that are computed", weights_as_input),
    )
)
