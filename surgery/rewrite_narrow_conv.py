"""Rewrite a convolution to one channel, which ends a vocoder, to make several steps at once.

Before: y = f(Conv(x)), x [N, C, T], one channel of k taps, f activations; an output of the graph
After:  z = f(Conv(x)) of stride s, [N, s, U], channel p the steps s u + p of y: w'[p, c, p + j] = w[c, j], k + s - 1
        taps; y = z transposed to [N, U, s] and read as [N, 1, s U]; s is 4, or 8 for a long T

The compiler counts a convolution to one channel as one to 16, and hands a tensor of one channel on, and out, as one of
32. With four steps in four channels the products are fewer, (k + 3) / 4 k times, and the sound leaves in a fourth of
the traffic. Piper's last layer, [1, 32, 27904] to one channel of 7 taps, with Tanh, between a Conv and the output,
modelled ms without and with the pass: rk3588 1.76, 1.49; rk3576 2.35, 1.90; rk3562 2.85, 2.69. On rk3566 and rk3568
the transposition falls to the CPU, and it does not pay (measured, 2.3.2).

Left alone: a result that is not, through layouts alone, an output of the graph (not measured), or one of other than
four axes, whose last Reshape would fall to the CPU; steps that are no multiple of eight (four at once, an odd number of
times: the transposition falls to rk3588's CPU); strides, dilations, groups, kernels of two taps or fewer, or so many
that a kernel's field would not hold them; weights or biases that are computed.

Exact: the same products in the same sum, besides products with zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.convolution_fields import Axis
from surgery.conv_axes import CONV, axes_of
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_at, input_of, only_reader
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.scopes import drop_unused_weights
from surgery.weights import weight_of

_POINTWISE = "copied: the same function of each number"
ACTIVATIONS = (
    Matched("LeakyRelu", irrelevant={"alpha": _POINTWISE}),
    Matched("Relu"),
    Matched("Sigmoid"),
    Matched("Tanh"),
)

_MOVED = "the same numbers in any layout"
LAYOUTS = (
    Matched("Identity"),
    Matched("Reshape", irrelevant={"allowzero": _MOVED}),
    Matched("Squeeze", irrelevant={"axes": _MOVED}),
    Matched("Unsqueeze", irrelevant={"axes": _MOVED}),
)

DECLARATION = Declaration(
    name="rewrite_narrow_conv",
    summary="the last convolution, to one channel, makes four steps at once",
    exactness=Exact("the same products in the same sum, besides products with zero"),
    after=frozenset({"fold_constants", "fold_scales", "fold_shifts", "normalise_auto_pad", "normalise_static_inputs"}),
    matches=(CONV, *ACTIVATIONS, *LAYOUTS),
    pays_on=frozenset({"rk3562", "rk3576", "rk3588"}),
)

STEPS_AT_ONCE = (4, 8)
"""What is tried. Of eight the compiler splits the convolution in two: 0.04 ms less on rk3588, as much more on the two
others. With two the transposition falls to rk3588's CPU."""

LONGEST_AXIS = 8192
"""Most steps that the NPU transposes: 8192 stay there, 8200 fall to the CPU (measured, rk3588, 2.3.2)."""

WHOLE_STEPS = 2
"""What they are a multiple of: of 110, 112, 114 and 116 steps the transposition stays there, of 109 it does not (the
same; rk3562 and rk3576 have it on the NPU)."""

SHORTEST_KERNEL = 3
"""(k + 3) / 4 k is 1 at k = 1; of two taps nothing was measured."""

LONGEST_KERNEL = 16
"""Of the new one; more taps are split by the compiler into slices and a sum (measured, 2.3.2)."""


_COMPILERS_AXES = 4
"""Of an output of three axes the compiler has the last Reshape done by the CPU (measured, 2.3.2)."""


@dataclass(frozen=True)
class _Plan:
    """A convolution, its one axis, steps at once, the activations behind it, its weights [1, C, k] and its bias [1]."""

    node: ir.Node
    axis: Axis
    at_once: int
    behind: tuple[ir.Node, ...]
    weight: NDArray[Any]
    bias: NDArray[Any] | None


def rewrite_narrow_conv() -> Pass:
    """The pass; its hits are convolutions."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_be_narrow, _plan, _apply))


def _may_be_narrow(node: ir.Node) -> bool:
    if not is_one_of(node, (CONV,)) or node.attributes.get_int("group", 1) != 1:
        return False
    weight = static_shape(input_at(node, 1))
    return weight is not None and len(weight) == 3 and weight[0] == 1


def _plan(node: ir.Node) -> _Plan | None:
    axes = axes_of(node)
    if isinstance(axes, Refused):
        return None
    (axis,) = axes
    at_once = next((count for count in STEPS_AT_ONCE if _holds(axis, count)), None)
    if axis.stride != 1 or axis.dilation != 1 or axis.kernel < SHORTEST_KERNEL or at_once is None:
        return None
    weight, bias = (weight_of(input_at(node, place)) for place in (1, 2))
    biased = input_at(node, 2) is not None
    behind = _activations_behind(node)
    last = behind[-1] if behind else node
    if weight is None or (biased and bias is None) or not _is_put_out(last.outputs[0]):
        return None
    return _Plan(node, axis, at_once, behind, weight, bias)


def _holds(axis: Axis, at_once: int) -> bool:
    """Whether so many steps at once divide those that are made, and leave a kernel and an axis that the NPU has."""
    steps, rest = divmod(axis.steps, at_once)
    return (
        rest == steps % WHOLE_STEPS == 0 and 0 < steps <= LONGEST_AXIS and axis.kernel + at_once - 1 <= LONGEST_KERNEL
    )


def _activations_behind(node: ir.Node) -> tuple[ir.Node, ...]:
    """The activations that alone read `node`, or the one before them, in order."""
    found: list[ir.Node] = []
    value = node.outputs[0]
    while (reader := only_reader(value)) is not None and is_one_of(reader, ACTIVATIONS):
        found.append(reader)
        value = reader.outputs[0]
    return tuple(found)


def _is_put_out(value: ir.Value) -> bool:
    """Whether `value` is read by layouts alone, which end in outputs of the graph, of four axes."""
    if value.is_graph_output():
        return len(static_shape(value) or ()) == _COMPILERS_AXES and not list(value.uses())
    readers = [use.node for use in value.uses()]
    return bool(readers) and all(is_one_of(reader, LAYOUTS) and _is_put_out(reader.outputs[0]) for reader in readers)


def _apply(plan: _Plan) -> None:
    node, axis, last = plan.node, plan.axis, plan.behind[-1] if plan.behind else plan.node
    at_once = plan.at_once
    graph, given = graph_of(node), input_of(node)
    make = Builder(graph, last, f"{DECLARATION.name}/{node.outputs[0].name}")
    inputs = [given, make.constant("weight", phase_weights(plan.weight, at_once))]
    if plan.bias is not None:
        inputs.append(make.constant("bias", np.repeat(plan.bias, at_once)))
    batch, steps = sizes_of(given)[0], axis.steps // at_once
    attributes = {
        "kernel_shape": [axis.kernel + at_once - 1],
        "strides": [at_once],
        "pads": [axis.pad_begin, axis.pad_end],
    }
    made = make.add("Conv", inputs, [batch, at_once, steps], "phases", **attributes)
    for place, activation in enumerate(plan.behind):
        stated = {name: attribute.value for name, attribute in activation.attributes.items()}
        made = make.add(activation.op_type, [made], sizes_of(made), f"activation{place}", **stated)
    turned = make.add("Transpose", [made], [batch, steps, at_once], "turned", perm=[0, 2, 1])
    take_place(last, make.reshape(turned, [batch, 1, axis.steps], "joined"))
    weights = [value for value in node.inputs[1:] if value is not None and value.is_initializer()]
    for gone in reversed((node, *plan.behind)):
        if gone is not last:
            graph.remove(gone, safe=True)
    drop_unused_weights(graph, weights)


def phase_weights(weight: NDArray[Any], at_once: int) -> NDArray[Any]:
    """`weight` [1, C, k] as [s, C, k + s - 1], each channel one step further on; s is `at_once`."""
    _, channels, kernel = weight.shape
    wide = np.zeros((at_once, channels, kernel + at_once - 1), weight.dtype)
    for phase in range(at_once):
        wide[phase, :, phase : phase + kernel] = weight[0]
    return wide
