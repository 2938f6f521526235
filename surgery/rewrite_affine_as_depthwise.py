"""Rewrite multiplications and additions by constants, ahead of an activation, as a depthwise convolution.

Before:  f(x * a + b), f((x + b) * a), f(x + b), f(x * a), f(b - x), ...      a, b one number or one for each channel
After:   f(Conv(x; W = a, bias = b))                                          kernel 1, as many groups as channels
f:       LeakyRelu, PRelu, Clip, Elu, Sigmoid, Softplus, Tanh, Abs, and x * sigmoid(beta x)

The compiler makes one layer of a depthwise convolution and the activation behind it (ConvLeakyRelu, ConvExSwish, ...),
one pass over the tensor, where the step and the activation are two. By the layer table such a layer costs, beside the
traffic of one pass, 87 cycles for each KB on rk3588, 275 on rk3562 and rk3576, 312 on rk3566 and rk3568 (measured,
2.3.2, the same for 3 to 4096 channels and 16 to 122880 steps); a pass costs 200. So it pays on rk3588 alone, there
for one step as for many. [1, 128, 1200], `x * a + b` and a LeakyRelu: 0.086 ms modelled instead of 0.120.

Left alone: what a Relu reads (the compiler makes AddRelu, MulRelu and BatchNormalizationRelu, cheaper yet), what no
such activation reads, or something else too (sums and products with another tensor fuse with a depthwise convolution on
rk3576 alone, where they do not pay); what the compiler takes into the weights of a layer before; what comes from no
convolution through elementwise operators (between MatMuls the compiler would turn the tensor, and back); constants that
vary along another axis than the channels; scales outside fp16's range of full precision, and shifts beyond its range;
more channels than the hardware's field holds; ranks other than 3 and 4; and what the toolkit would take for zero then
(`surgery.affine_steps.would_be_zeroed`).

Weights are rounded to fp16, as constants of a Mul are, and the bias is not (in the simulator): x * a + b has a rounding
less. Of (x + b) * a, where x is near -b, the rounding of a counts, no more than that of x does.

Exact: (x + b) a = a x + a b.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.affine_steps import (
    MATCHES,
    Affine,
    affine_ending_at,
    before_steps,
    may_be_step,
    take_affine,
    would_be_zeroed,
)
from surgery.channel_layout import lies_in_channels
from surgery.constant_operands import operand_of
from surgery.conv_axes import CONV, axes_of
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.depthwise import depthwise
from surgery.graph import graph_of, input_at, only_reader
from surgery.graph_builder import Builder
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.spelled_activations import is_spelled
from surgery.value_ranges import LEAKY_RELU
from surgery.weights import tensor_of

_SHAPE = "the activation stays as it is"
SIGMOID, MUL = Matched("Sigmoid"), Matched("Mul")
TAKEN_IN = (
    Matched("Abs"),
    Matched("Clip"),
    Matched("Elu", irrelevant={"alpha": _SHAPE}),
    LEAKY_RELU,
    Matched("PRelu"),
    SIGMOID,
    Matched("Softplus"),
    Matched("Tanh"),
)
"""What the compiler makes one layer of with the convolution before it, on every target (measured, 2.3.2). Sqrt, Exp,
HardSwish, HardSigmoid and Gelu stay layers of their own."""

ADD = Matched("Add")
MOST_CHANNELS = 4096
"""Most channels of a depthwise convolution that were built; 12288 overflow a field that holds 8191 (0x403c)."""

DECLARATION = Declaration(
    name="rewrite_affine_as_depthwise",
    summary="multiplications and additions by constants ahead of an activation become a depthwise convolution with it",
    exactness=Exact("(x + b) a = a x + a b"),
    after=frozenset(
        {
            "decompose_functions",
            "fold_constants",
            "fold_neutral_operands",
            "fold_scales",
            "fold_shifts",
            "fuse_affine_steps",
            "normalise_double",
            "normalise_float32",
            "rewrite_sines",
        }
    ),
    matches=(*(matched for matched in MATCHES if matched.op != CONV.op), CONV),
    pays_on=frozenset({"rk3588"}),
)


def rewrite_affine_as_depthwise() -> Pass:
    """The pass; its hits are rows of steps."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, may_be_step, _plan, _apply))


def _plan(node: ir.Node) -> Affine | None:
    affine = affine_ending_at(node)
    if affine is None or not affine.fits_half or len(affine.scale) > MOST_CHANNELS:
        return None
    if any(map(is_spelled, affine.nodes)):
        return None
    if np.all(affine.scale == 1.0) and np.all(affine.shift == 0.0):
        return None
    fuses = _is_taken_in(affine) or _is_swish(affine.output)
    if not fuses or _is_residual_sum(affine.value) or not lies_in_channels(affine.value) or would_be_zeroed(affine):
        return None
    return affine


def _is_residual_sum(value: ir.Value) -> bool:
    """Whether the compiler makes one Conv of the sum h + Conv(h) that `value` is, and of what scales and shifts it."""
    node = value.producer()
    if node is None or only_reader(value) is None or not is_one_of(node, (ADD,)) or len(node.inputs) != 2:
        return False
    return any(_is_centred_conv(other, on=one) for one, other in (node.inputs, node.inputs[::-1]))


def _is_centred_conv(value: ir.Value | None, on: ir.Value | None) -> bool:
    """Whether `value`, of one reader, is a Conv of `on` with a tap in the middle for each step, scaled and shifted."""
    made = None if value is None else before_steps(value)
    node = None if made is None else made.producer()
    if made is None or node is None or only_reader(made) is None or not is_one_of(node, (CONV,)):
        return False
    weight, group = tensor_of(input_at(node, 1)), node.attributes.get_int("group", 1)
    if weight is None or node.inputs[0] is not on or (group > 1 and group != weight.shape[0]):
        return False  # of groups of several channels the compiler makes a Conv each
    axes = axes_of(node)
    return not isinstance(axes, Refused) and all(
        axis.stride == 1 and axis.pad_begin == axis.pad_end == axis.dilation * (axis.kernel - 1) / 2 for axis in axes
    )


def _is_taken_in(affine: Affine) -> bool:
    """Whether all that reads it is an activation, by constants, that the compiler takes in."""
    node = only_reader(affine.output)
    if node is None or not is_one_of(node, TAKEN_IN) or node.inputs[0] is not affine.output:
        return False
    constant = all(tensor_of(value) is not None for value in node.inputs[1:] if value is not None)
    return constant and not _is_part_of_swish(affine, node)


def _is_part_of_swish(affine: Affine, activation: ir.Node) -> bool:
    """Whether it is the beta of x * sigmoid(beta x), which is one layer already."""
    reader = only_reader(activation.outputs[0])
    if reader is None or not is_one_of(activation, (SIGMOID,)) or np.any(affine.shift != 0.0):
        return False
    return is_one_of(reader, (MUL,)) and affine.value in reader.inputs


def _is_swish(value: ir.Value) -> bool:
    """Whether all that reads `value` is x * sigmoid(x) or x * sigmoid(beta x)."""
    readers = [node for node, _ in value.uses()]
    if len(readers) != 2 or value.is_graph_output():
        return False
    return any(
        product.graph is value.graph and is_one_of(product, (MUL,)) and _sigmoid(other, value) in product.inputs
        for product, other in (readers, readers[::-1])
    )


def _sigmoid(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """sigmoid(beta `value`) that begins with `node`; None where it is another function, or others read it."""
    operand = operand_of(node, (MUL,))
    sigmoid: ir.Node | None = node
    if operand is not None and operand.value is value and not operand.values.ndim:
        sigmoid = only_reader(node.outputs[0])
    if sigmoid is None or not is_one_of(sigmoid, (SIGMOID,)) or only_reader(sigmoid.outputs[0]) is None:
        return None
    return sigmoid.outputs[0]


def _apply(affine: Affine) -> None:
    node = affine.nodes[-1]
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{affine.output.name}")
    shift = affine.shift if np.any(affine.shift != 0.0) else None
    take_affine(affine, depthwise(make, affine.value, affine.scale, shift, "affine"))
