"""Graphs that break one precondition of `trim_decoder` each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from surgery.trim_decoder import trim_decoder
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.graphs import decoder
from tests.surgery.refusals import Refusal, small_decoder, two_rates, unknown_kernel
from tests.vits_writer.recipe import Recipe

LEFT, EMITTED = 3, 2
"""Of the 8 frames of `small_decoder`."""


def _between(op: str, *more: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, ["t0", *more], ["t1"], "between", **attributes)


def with_input(name: str, shape: list[int | str], between: onnx.NodeProto) -> ir.Model:
    """The small decoder, where `between` reads the input `name` too."""
    made = ir.to_proto(small_decoder(between=between, pads=[1, 1]))
    made.graph.input.append(tensor(name, shape))
    return ir.from_proto(made)


def frames_as_bias() -> ir.Model:
    """A convolution whose bias depends on the frames."""
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["t0"], "masked"),
        helper.make_node("Squeeze", ["t0", "axes"], ["v"], "flat"),
        helper.make_node("Conv", ["t0", "w", "v"], ["audio"], "net"),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    weights = [constant("w", np.ones((8, 1, 1))), constant("axes", [0, 1], np.int64)]
    return model(nodes, inputs, [tensor("audio", [1, 8, 8])], weights)


def steps_ahead() -> ir.Model:
    """Samples with an axis of one behind their steps."""
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["t0"], "masked"),
        helper.make_node("Conv", ["t0", "w"], ["t1"], "net", pads=[1, 1]),
        helper.make_node("Unsqueeze", ["t1", "axes"], ["audio"], "ahead"),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    weights = [constant("w", np.ones((1, 1, 3))), constant("axes", [3], np.int64)]
    return model(nodes, inputs, [tensor("audio", [1, 1, 8, 1])], weights)


def of_unknown_channels() -> ir.Model:
    """A latent of some channels."""
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["t1"], "masked"),
        helper.make_node("Conv", ["t1", "w"], ["audio"], "net", pads=[1, 1]),
    ]
    inputs = [tensor("z", [1, "channels", 8]), tensor("y_mask", [1, 1, 8])]
    return model(nodes, inputs, [tensor("audio", [1, 1, 8])], [constant("w", np.ones((1, 2, 3)))])


def two_outputs() -> ir.Model:
    """What is between is an output too."""
    made = ir.to_proto(small_decoder(pads=[1, 1]))
    made.graph.output.append(tensor("t1", [1, 1, 8]))
    return ir.from_proto(made)


def masked_to_the_end() -> ir.Model:
    """The samples are multiplied by the mask."""
    nodes = [helper.make_node("Mul", ["z", "y_mask"], ["audio"], "masked")]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    return model(nodes, inputs, [tensor("audio", [1, 1, 8])])


def _trims(precondition: str, got: str, build: Callable[[], ir.Model], node: str = "net", left: int = LEFT) -> Refusal:
    return Refusal(trim_decoder("y_mask", left, 8 - 2 * left), precondition, node, got, build)


def _net(precondition: str, got: str, op: str = "Conv", **options: Any) -> Refusal:
    return _trims(precondition, got, lambda: small_decoder(op, **options))


def _keeps(op: str, *more: str, **attributes: Any) -> Refusal:
    node = _between(op, *more, **attributes)
    return _trims(_KEPT, op, lambda: small_decoder(between=node, pads=[1, 1]), "between")


_A_MUL = "a node that multiplies by the mask"
_KEPT = "each step kept between the convolutions"
_BESIDE = "one step, or all, of what is computed beside the frames"
_STEPS = "the window's frames times the rate as the last size of every value"
_SAME = "as much context on the left of what is emitted as on the right"
_ONE_AXIS = "one spatial axis"

REFUSALS = (
    _trims(_A_MUL, "no Mul reads it", lambda: decoder(Recipe(mask=False)), "input 'y_mask'"),
    Refusal(trim_decoder("x_mask", 3, 2), _A_MUL, "input 'x_mask'", "there is no such input", decoder),
    _trims("a convolution behind the mask's last use", "none", masked_to_the_end, "input 'y_mask'"),
    _trims("one output", "2", two_outputs, "the graph"),
    _trims("one rate a node", "the node join", two_rates, "input 'y_mask'"),
    _keeps("Slice", "w", "w"),
    _keeps("Concat", "t0", axis=2),
    _keeps("Resize", "", "w"),
    _keeps("Transpose"),
    _keeps("Tanh", domain="com.microsoft"),
    _trims(_STEPS, "the shape [1, 1, 8, 1]", steps_ahead, "value 'audio'"),
    _trims(_STEPS, "a shape that is not known", of_unknown_channels, "value 't1'"),
    _trims(_BESIDE, "'b' of the shape [1, 1, 8]", lambda: with_input("b", [1, 1, 8], _between("Add", "b")), "between"),
    _trims(_BESIDE, "'b' of a shape that", lambda: with_input("b", [1, 1, "n"], _between("Add", "b")), "between"),
    _trims(_BESIDE, "'v'", frames_as_bias),
    Refusal(trim_decoder("y_mask", 3, 3), _SAME, "input 'y_mask'", "8 frames", lambda: small_decoder(pads=[1, 1])),
    Refusal(trim_decoder("y_mask", 3, 1), _SAME, "input 'y_mask'", "8 frames", lambda: small_decoder(pads=[1, 1])),
    _trims(_SAME, "a size that is not known", decoder, "input 'y_mask'"),
    _trims("more context than the decoder needs behind the mask", "1", lambda: small_decoder(pads=[1, 1]),
           "input 'y_mask'", left=1),
    _net("explicit pads", "auto_pad SAME_UPPER", auto_pad="SAME_UPPER"),
    _net("no output_shape", "output_shape (24,)", "ConvTranspose", output_shape=[24], strides=[3]),
    _net(_ONE_AXIS, "a kernel of shape [1, 3]", weight=np.ones((1, 1, 1, 3))),
    _trims("a known kernel length", "neither", unknown_kernel),
    _net("an output of exactly the rate times the input's length", "= -3 (stride 1, kernel 3)"),
)  # fmt: skip
