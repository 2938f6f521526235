"""Rewrite a transposed convolution whose kernel the hardware's fields cannot hold, as a convolution by phases.

Before: y = ConvTranspose(x), x [N, C, T], strides 1, 2, 4 or 8, a kernel of more than 31 taps, or one that reaches more
        than 15 steps before the first input (kernel - 1 - pad)
After:  z = Conv(x), [N, M s, U], its channel m s + p the phase p of y's channel m; y = z shuffled to [N, M, U s], and
        cut to y's length where that is no multiple of s

With g_k = dilation k - pad = s q_k + p_k:   y[s u + p] = sum over the taps k with p_k = p of w[k] x[u - q_k]

The fields (offsets 0x1038 and 0x1068; 0x1024) belong to the compiler's own ConvTranspose, which it takes for those
strides and for dilations; for others it spreads the input itself and runs a Conv (measured, 2.3.2). The order (m, p)
of the channels is the one that the compiler survives: (p, m) dies in its rule `merge_weight_inner_perm`
(toolkit-facts).

Left alone: what fits, weights or biases that are computed, and a stride on more than one axis; the gate
`structure.fields` knows the target and refuses what its fields cannot hold.

Exact: the same products in the same sum, besides products with zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir import convenience
from onnx_ir.passes.common import ShapeInferencePass

from contracts.convolution_fields import transposed_overflow
from surgery.block_shuffle import Builder
from surgery.conv_axes import axes_of, numbers, static_sizes
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph_constants import add_constant
from surgery.matching import Matched, is_one_of
from surgery.phases import Phases, phases_of, spread_to_phases
from surgery.scopes import drop_unused_weights

CONV_TRANSPOSE = Matched(
    "ConvTranspose",
    used=frozenset({"dilations", "group", "kernel_shape", "output_padding", "pads", "strides"}),
    required={"auto_pad": "NOTSET or VALID", "output_shape": "absent"},
)

DECLARATION = Declaration(
    name="rewrite_long_transposed_conv",
    summary="a transposed convolution whose kernel the hardware's fields cannot hold, as a convolution by phases",
    exactness=Exact("the same products in the same sum, besides products with zero"),
    after=frozenset({"normalise_static_inputs", "fold_constants"}),
    matches=(CONV_TRANSPOSE,),
)


@dataclass(frozen=True)
class _Plan:
    """A transposed convolution, the phases of each axis, its weights [C, M / group, k...] and its bias [M]."""

    node: ir.Node
    phases: tuple[Phases, ...]
    weight: NDArray[np.generic]
    bias: NDArray[np.generic] | None


def rewrite_long_transposed_conv() -> Pass:
    """The pass; its hits are transposed convolutions."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not any(is_one_of(node, (CONV_TRANSPOSE,)) for node in model.graph):
            return Rewritten(model, 0)
        changed = model.clone()
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(changed)
        plans = [plan for node in changed.graph if (plan := _plan(node)) is not None]
        if not plans:
            return Rewritten(model, 0)
        for plan in plans:
            _apply(plan)
        return Rewritten(changed, hits=len(plans))

    return Pass(DECLARATION, rewrite)


def _plan(node: ir.Node) -> _Plan | None:
    if not is_one_of(node, (CONV_TRANSPOSE,)) or "output_shape" in node.attributes:
        return None
    axes = axes_of(node)
    if isinstance(axes, Refused) or not transposed_overflow(axes) or sum(axis.stride > 1 for axis in axes) > 1:
        return None
    weight, bias = (_constant(node, place) for place in (1, 2))
    biased = len(node.inputs) > 2 and node.inputs[2] is not None
    more = numbers(node, "output_padding", [0] * len(axes))
    if weight is None or (biased and bias is None) or len(more) != len(axes):
        return None
    phases = tuple(phases_of(axis, extra) for axis, extra in zip(axes, more, strict=True))
    return _Plan(node, phases, weight, bias) if all(made.length > 0 for made in phases) else None


def _constant(node: ir.Node, place: int) -> NDArray[np.generic] | None:
    value = node.inputs[place] if place < len(node.inputs) else None
    tensor = None if value is None or value.is_graph_input() else convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def _apply(plan: _Plan) -> None:
    node, phases = plan.node, plan.phases
    graph, output, given = node.graph, node.outputs[0], node.inputs[0]
    assert isinstance(graph, ir.Graph)
    assert given is not None
    make = Builder(graph, node, f"{DECLARATION.name}/{output.name}")
    group = node.attributes.get_int("group", 1)
    stride = prod(axis.stride for axis in phases)
    weight = spread_to_phases(plan.weight, group, phases)
    inputs = [given, add_constant(graph, f"{make.prefix}/weight", weight)]
    if plan.bias is not None:
        inputs.append(add_constant(graph, f"{make.prefix}/bias", np.repeat(plan.bias, stride)))
    batch, channels = static_sizes(given)[0], weight.shape[0]
    steps = [axis.steps for axis in phases]
    attributes = {
        "kernel_shape": [axis.kernel for axis in phases],
        "pads": [*(axis.begin for axis in phases), *(axis.end for axis in phases)],
        "group": group,
    }
    made = make.add("Conv", inputs, [batch, channels, *steps], "phases", **attributes)
    if stride > 1:
        made = _shuffled(make, made, phases)
    lengths = [axis.length for axis in phases]
    starts, axes = [0] * len(lengths), [2 + place for place in range(len(lengths))]
    if static_sizes(made)[2:] != lengths:
        bounds = [make.sizes(what, at) for what, at in (("starts", starts), ("ends", lengths), ("axes", axes))]
        made = make.add("Slice", [made, *bounds], [batch, channels // stride, *lengths], "cut")
    _take_place(node, made)


def _shuffled(make: Builder, made: ir.Value, phases: tuple[Phases, ...]) -> ir.Value:
    """[N, M s, ..., U, ...] as [N, M, ..., U s, ...], along the one strided axis; in four axes where it can be."""
    batch, channels, *steps = static_sizes(made)
    place, stride = next((place, axis.stride) for place, axis in enumerate(phases) if axis.stride > 1)
    channels //= stride
    before, behind = ([size] if size > 1 else [] for size in (prod(steps[:place]), prod(steps[place + 1 :])))
    outer = [batch * channels] if before or behind else [batch, channels]
    split = make.reshape(made, [*outer, stride, *before, steps[place], *behind], "split")
    order = list(range(len(static_sizes(split))))
    order.insert(len(outer) + len(before) + 1, order.pop(len(outer)))
    turned = make.add("Transpose", [split], [static_sizes(split)[axis] for axis in order], "turned", perm=order)
    steps[place] *= stride
    return make.reshape(turned, [batch, channels, *steps], "joined")


def _take_place(node: ir.Node, made: ir.Value) -> None:
    """Let `made` stand for the one output of `node`, under its name; `node` and weights that nothing uses go."""
    graph, output = node.graph, node.outputs[0]
    assert isinstance(graph, ir.Graph)
    weights = [value for value in node.inputs[1:] if value is not None and value.is_initializer()]
    made.shape = output.shape or made.shape
    output.replace_all_uses_with(made, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    made.name = output.name
    drop_unused_weights(graph, weights)
