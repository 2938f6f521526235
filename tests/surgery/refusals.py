"""For each precondition of each pass, a graph that breaks it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from surgery.declaration import Pass
from surgery.fold_with_onnxslim import fold_with_onnxslim
from surgery.mask_decoder import mask_decoder
from surgery.normalise_static_inputs import normalise_static_inputs
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.graphs import decoder
from tests.vits_writer.recipe import Recipe


@dataclass(frozen=True)
class Refusal:
    """A graph that `bound` must leave alone, for the one `precondition`, named at `node` with what was found there.

    A `node` of one word is a node's name.
    """

    bound: Pass
    precondition: str
    node: str
    got: str
    build: Callable[[], ir.Model]

    @property
    def told(self) -> str:
        """How the refusal names its place."""
        return self.node if " " in self.node else f"node '{self.node}'"

    @property
    def label(self) -> str:
        """As a test's id."""
        return f"{self.bound.name}: {self.precondition}: {self.got}"


def small_decoder(
    op: str = "Conv", weight: Any = None, between: onnx.NodeProto | None = None, **attributes: Any
) -> ir.Model:
    """z * y_mask, `between` (t0 to t1), and one convolution `net` of 3 ones whose attributes are as given."""
    ones = np.ones((1, 1, 3)) if weight is None else weight
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["t0"], "masked"),
        between or helper.make_node("LeakyRelu", ["t0"], ["t1"], "between", alpha=0.1),
        helper.make_node(op, ["t1", "w"], ["audio"], "net", **attributes),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    return model(nodes, inputs, [tensor("audio", [1, 1, "n"])], [constant("w", ones)])


def two_rates() -> ir.Model:
    """A path twice as fast as the one it joins."""
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["x"], "masked"),
        helper.make_node("ConvTranspose", ["x", "w"], ["fast"], "up", strides=[2], kernel_shape=[2]),
        helper.make_node("Conv", ["x", "w"], ["slow"], "beside", kernel_shape=[2], pads=[1, 0]),
        helper.make_node("Add", ["fast", "slow"], ["audio"], "join"),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    return model(nodes, inputs, [tensor("audio", [1, 1, 16])], [constant("w", np.ones((1, 1, 2)))])


def unknown_kernel() -> ir.Model:
    """Weights that are a graph input of unknown shape."""
    made = small_decoder(pads=[1, 1])
    weight = made.graph.initializers.pop("w")
    weight.const_value = weight.shape = None
    made.graph.inputs.append(weight)
    return made


def _masks(precondition: str, got: str, build: Callable[[], ir.Model], node: str = "net") -> Refusal:
    return Refusal(mask_decoder("y_mask"), precondition, node, got, build)


def _net(precondition: str, got: str, op: str = "Conv", **options: Any) -> Refusal:
    return _masks(precondition, got, lambda: small_decoder(op, **options))


def _between(op: str, *more: str, outputs: int = 1, **attributes: Any) -> Refusal:
    made = ["t1", *(f"u{i}" for i in range(1, outputs))]
    node = helper.make_node(op, ["t0", *more], made, "between", **attributes)
    what = "element by element between the convolutions"
    return _masks(what, op, lambda: small_decoder(between=node, pads=[1, 1]), "between")


_A_MUL = "a node that multiplies by the mask"
_EXACT = "an output of exactly the rate times the input's length"
_ONE_AXIS = "one spatial axis"
_SHAPES = {"z": (1, 8, 24), "y_mask": (1, 1, 24)}
_EVERY_INPUT = "a shape for every input, and for nothing else"

REFUSALS = (
    _masks(_A_MUL, "no Mul reads it", lambda: decoder(Recipe(mask=False)), "input 'y_mask'"),
    Refusal(mask_decoder("x_mask"), _A_MUL, "input 'x_mask'", "there is no such input", decoder),
    _masks("one rate a node", "the node join", two_rates, "input 'y_mask'"),
    _between("Slice", "w", "w"),
    _between("Pad", "w"),
    _between("Concat", "t0", axis=2),
    _between("Resize", "", "w"),
    _between("Dropout"),
    _between("Split", outputs=2, axis=2),
    _between("Tanh", domain="com.microsoft"),
    _net("explicit pads", "auto_pad SAME_UPPER", auto_pad="SAME_UPPER"),
    _net("explicit pads", "auto_pad SAME_LOWER", "ConvTranspose", auto_pad="SAME_LOWER", strides=[3]),
    _net("explicit pads", "auto_pad VALID", auto_pad="VALID"),
    _net("no output_shape", "output_shape (24,)", "ConvTranspose", output_shape=[24], strides=[3]),
    _net(_ONE_AXIS, "a kernel of shape [1, 3]", weight=np.ones((1, 1, 1, 3))),
    _net(_ONE_AXIS, "strides (1, 1)", strides=[1, 1], pads=[1, 1]),
    _net(_ONE_AXIS, "pads (0, 1, 0, 1)", pads=[0, 1, 0, 1]),
    _net(_ONE_AXIS, "dilations 2", dilations=2, pads=[2, 2]),
    _masks("a known kernel length", "neither", unknown_kernel),
    # 3 taps: a Conv needs 2 steps of padding, a ConvTranspose of stride 3 none, of stride 2 one.
    _net(_EXACT, "= -3 (stride 1, kernel 3)"),
    _net(_EXACT, "= -2 (stride 1, kernel 3)", pads=[1, 0]),
    _net(_EXACT, "= 0 (stride 1, kernel 3)", pads=[3, 0]),
    _net(_EXACT, "= -3 (stride 1, kernel 3)", dilations=[2], pads=[1, 1]),
    _net(_EXACT, "= -3 (stride 2, kernel 3)", strides=[2]),
    _net(_EXACT, "= -3 (stride 2, kernel 3)", "ConvTranspose", strides=[2]),
    _net(_EXACT, "= -2 (stride 3, kernel 3)", "ConvTranspose", strides=[3], pads=[1, 0]),
    _net(_EXACT, "= -3 (stride 3, kernel 3)", "ConvTranspose", strides=[3], output_padding=[1]),
    _net(_EXACT, "= -5 (stride 3, kernel 3)", "ConvTranspose", strides=[3], dilations=[2]),
    Refusal(fold_with_onnxslim(), "static inputs", "input 'z'", "[1, 8, frames]", decoder),
    Refusal(normalise_static_inputs(_SHAPES | {"sid": (1,)}), _EVERY_INPUT, "the graph", "['z', 'y_mask']", decoder),
    Refusal(normalise_static_inputs({"z": (1, 8, 24)}), _EVERY_INPUT, "the graph", "['z', 'y_mask']", decoder),
    Refusal(normalise_static_inputs({"a": (1,), "y_mask": (1,)}), _EVERY_INPUT, "the graph", "inputs", decoder),
    Refusal(normalise_static_inputs({}), _EVERY_INPUT, "the graph", "['z', 'y_mask']", decoder),
)
