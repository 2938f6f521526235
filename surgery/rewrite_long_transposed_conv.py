"""Rewrite a transposed convolution that the hardware's fields cannot hold, as a convolution by phases.

Before: y = ConvTranspose(x), x [N, C, T], a stride above 8, a kernel of more than 31 taps, or one that reaches more
        than 15 steps before the first input (kernel - 1 - pad)
After:  z = Conv(x), [N, M s, U], its channel m s + p the phase p of y's channel m; y = z shuffled to [N, M, U s], and
        cut to y's length where that is no multiple of s

With g_k = dilation k - pad = s q_k + p_k:   y[s u + p] = sum over the taps k with p_k = p of w[k] x[u - q_k]

The fields (offsets 0x1014, 0x1024, 0x1038 and 0x1068, by target) belong to the compiler's own ConvTranspose. rk3562 and
rk3576 take it for every stride; rk3566, rk3568 and rk3588 for 1, 2, 4 and 8 (rk3588 also where there are dilations),
and spread the input for others, on the CPU, before a Conv (measured, 2.3.2). What overflows on any of them is
rewritten. The order (m, p) of the channels is the one that the compiler survives: (p, m) dies in its rule
`merge_weight_inner_perm` (toolkit-facts).

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

from contracts.convolution_fields import SHORTEST_OVERFLOW, SPARED_STRIDES, TRANSPOSED_FIELDS, Axis, transposed_overflow
from surgery.conv_axes import CONV_TRANSPOSE, axes_of, kernel_of, numbers
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_at, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.matching import is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.phases import Phases, phases_of, spread_to_phases
from surgery.weights import weight_of

DECLARATION = Declaration(
    name="rewrite_long_transposed_conv",
    summary="a transposed convolution whose stride or kernel the hardware's fields cannot hold, as a plain one",
    exactness=Exact("the same products in the same sum, besides products with zero"),
    after=frozenset({"fold_constants", "normalise_auto_pad", "normalise_static_inputs", "rewrite_transposed_conv"}),
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

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_overflow, _plan, _apply))


def _may_overflow(node: ir.Node) -> bool:
    """Whether `node` may be one to rewrite, before its shapes are known."""
    if not is_one_of(node, (CONV_TRANSPOSE,)) or "output_shape" in node.attributes:
        return False
    odd = not SPARED_STRIDES.issuperset(numbers(node, "strides", [1]))
    return odd or max(kernel_of(node), default=0) >= SHORTEST_OVERFLOW


def _overflows(axes: tuple[Axis, ...]) -> bool:
    """Whether a field of any target overflows."""
    return any(transposed_overflow(axes, fields) for fields in TRANSPOSED_FIELDS.values())


def _plan(node: ir.Node) -> _Plan | None:
    axes = axes_of(node)
    if isinstance(axes, Refused) or not _overflows(axes) or sum(axis.stride > 1 for axis in axes) > 1:
        return None
    weight, bias = (weight_of(input_at(node, place)) for place in (1, 2))
    biased = len(node.inputs) > 2 and node.inputs[2] is not None
    more = numbers(node, "output_padding", [0] * len(axes))
    if weight is None or (biased and bias is None) or len(more) != len(axes):
        return None
    phases = tuple(phases_of(axis, extra) for axis, extra in zip(axes, more, strict=True))
    return _Plan(node, phases, weight, bias) if all(made.length > 0 for made in phases) else None


def _apply(plan: _Plan) -> None:
    node, phases = plan.node, plan.phases
    given = input_of(node)
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    group = node.attributes.get_int("group", 1)
    stride = prod(axis.stride for axis in phases)
    weight = spread_to_phases(plan.weight, group, phases)
    inputs = [given, make.constant("weight", weight)]
    if plan.bias is not None:
        inputs.append(make.constant("bias", np.repeat(plan.bias, stride)))
    batch, channels = sizes_of(given)[0], weight.shape[0]
    steps = [axis.steps for axis in phases]
    attributes = {
        "kernel_shape": [axis.kernel for axis in phases],
        "pads": [*(axis.begin for axis in phases), *(axis.end for axis in phases)],
        "group": group,
    }
    made = make.add("Conv", inputs, [batch, channels, *steps], "phases", **attributes)
    if stride > 1:
        made = _shuffled(make, made, phases)
    for place, axis in enumerate(phases):
        made = make.first(made, 2 + place, axis.length, f"cut{place}")
    take_place(node, made)


def _shuffled(make: Builder, made: ir.Value, phases: tuple[Phases, ...]) -> ir.Value:
    """[N, M s, ..., U, ...] as [N, M, ..., U s, ...], along the one strided axis; in four axes where it can be."""
    batch, channels, *steps = sizes_of(made)
    place, stride = next((place, axis.stride) for place, axis in enumerate(phases) if axis.stride > 1)
    channels //= stride
    before, behind = ([size] if size > 1 else [] for size in (prod(steps[:place]), prod(steps[place + 1 :])))
    outer = [batch * channels] if before or behind else [batch, channels]
    split = make.reshape(made, [*outer, stride, *before, steps[place], *behind], "split")
    order = list(range(len(sizes_of(split))))
    order.insert(len(outer) + len(before) + 1, order.pop(len(outer)))
    turned = make.add("Transpose", [split], [sizes_of(split)[axis] for axis in order], "turned", perm=order)
    steps[place] *= stride
    return make.reshape(turned, [batch, channels, *steps], "joined")
