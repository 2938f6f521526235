"""Rewrite a transposed convolution as convolutions that make the phases of its output.

Before: y = ConvTranspose(x), x [N, C, T], a stride s above 1
After:  z_p = Conv(x as [N, C, T, 1]), [N, M, U, 1], for every phase p < s (those of like taps by one Conv and a Split);
        y = their Concat along the last axis, [N, M, U, s], as [N, M, U s]; y's own steps of it where there are more

With g_k = dilation k - pad = s q_k + p_k:   y[s u + p] = sum over the taps k with p_k = p of w[k] x[u - q_k]

The compiler models and runs a ConvTranspose with the stride's zeros between its input's steps: s times the products
that are needed. Other ways to put the phases together were measured and are worse (rknn-toolkit2 2.3.2): Reshape,
Transpose, Reshape becomes a Gather with register tasks of its own for every step (310 bytes of engine each, unseen by
the layer table; beyond 8192 steps they overflow), and falls to the CPU for lengths that are no multiple of 8;
DepthToSpace becomes a ConvTranspose; Transposes with the time as batch fall to the CPU for such lengths too.

Whether it pays is decided place by place (`surgery.upsampling_cost`): the few channels of a generator's last stage make
moving their bytes dearer than the products. Where a hardware field of the target overflows it is always rewritten.

There none of the forms that follow pays on rk3588. Of the first the ConvTranspose is 1.91 ms; two Convs that make two
phases each are 1.02, Splits of them 0.62, their Concat 0.62, and what lays the steps out for it and back 0.93: with the
latter free it would be 0.36 ms more still. Between two convolutions, modelled ms (Mcycles), 2.3.2:

    C to M, kernel, stride, steps            ConvTranspose   phases        one Conv of all taps, and a Split
    64 to 32, 8, 4, 12416 (Piper)            6.34 (2.29)     7.63 (1.10)   7.52 (1.30)
    80 to 40, 4, 2, 12544 (Inflect)          5.07 (1.92)     6.58 (1.47)   6.30 (1.58)
    40 to 20, 4, 2, 25088 (Inflect)          5.01 (1.56)     6.81 (1.16)   6.39 (1.21)

Of the first also a Conv a phase, 7.64 (1.11), and ConvTransposes over [T, 1] that make two phases side by side, [T, 2],
7.41 (1.50).

Left alone: what does not pay, more than one axis, groups (the hardware has a depthwise ConvTranspose, which is
cheaper), computed weights or biases, and more than 8192 steps or 64 phases (beyond what was measured).

Exact: the same products in the same sum, besides products with zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.targets import EVERY_TARGET, TARGETS, check_target
from surgery.conv_axes import CONV_TRANSPOSE, axes_of, numbers
from surgery.declaration import Declaration, Exact, Pass, Refused
from surgery.graph import graph_of, input_at, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.inferred import static_shape
from surgery.matching import is_one_of, opset_of
from surgery.node_rewrites import rewrite_nodes
from surgery.phase_groups import Group, grouped_phases, weights_of_group
from surgery.upsampling_cost import Site, phased_cost, transposed_cost
from surgery.weights import weight_of

DECLARATION = Declaration(
    name="rewrite_transposed_conv",
    summary="a transposed convolution, run with zeros between its steps, as plain convolutions, one for some phases",
    exactness=Exact("the same products in the same sum, besides products with zero"),
    after=frozenset({"fold_constants", "normalise_auto_pad", "normalise_static_inputs"}),
    matches=(CONV_TRANSPOSE,),
    pays_on=EVERY_TARGET,
)

MOST_STEPS = 8192
"""Of the input and of a phase. Beyond, fields that hold a step's number (0x4038, 0x5048: 13 bits) overflow on rk3588 at
8933 and not at 8200 and 10240 steps."""

MOST_PHASES = 64
"""Phases become inputs of one Concat and outputs of a Split."""

SLICE_INPUTS = 10
"""The opset from which a Slice takes its bounds as inputs (ONNX operator specification)."""

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})

By = Literal["time", "cycles"]


@dataclass(frozen=True)
class _Plan:
    """A transposed convolution, what it is, its weights [C, M, k] and its bias [M]."""

    node: ir.Node
    site: Site
    weight: NDArray[np.generic]
    bias: NDArray[np.generic] | None


def rewrite_transposed_conv(target: str | None, by: By = "time") -> Pass:
    """The pass; its hits are transposed convolutions.

    Args:
        target: for which it has to pay; None: on every one.
        by: what has to become less: the modelled time, or its cycles alone, whatever the traffic.

    Raises:
        ValueError: nothing is known of the target, or what to go by.
    """
    check_target(target)
    if by not in get_args(By):
        raise ValueError(f"a transposed convolution is judged by {' or '.join(get_args(By))}, not by {by!r}")
    targets = TARGETS if target is None else (target,)

    def plan(node: ir.Node) -> _Plan | None:
        found = _plan(node)
        return found if found is not None and all(_pays(found.site, one, by) for one in targets) else None

    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_pay, plan, _apply))


def _may_pay(node: ir.Node) -> bool:
    """Whether `node` may be one to rewrite, before its shapes are known."""
    if not is_one_of(node, (CONV_TRANSPOSE,)) or "output_shape" in node.attributes:
        return False
    return max(numbers(node, "strides", [1])) > 1 and node.attributes.get_int("group", 1) == 1


def _pays(site: Site, target: str, by: By) -> bool:
    before, after = transposed_cost(site, target), phased_cost(site, target)
    if before is None:
        return True
    return after.cycles < before.cycles if by == "cycles" else after.ms < before.ms


def _plan(node: ir.Node) -> _Plan | None:
    axes = axes_of(node)
    if isinstance(axes, Refused) or len(axes) != 1:
        return None
    weight, bias = (weight_of(input_at(node, place)) for place in (1, 2))
    biased = len(node.inputs) > 2 and node.inputs[2] is not None
    more = numbers(node, "output_padding", [0])
    shape, given = static_shape(node.inputs[0]), input_of(node)
    if weight is None or (biased and bias is None) or len(more) != 1 or shape is None or given.dtype not in FLOATS:
        return None
    ((axis,), (batch, channels, length)) = axes, shape
    if weight.ndim != 3 or weight.shape[0] != channels or weight.shape[2] != axis.kernel:
        return None
    phases = grouped_phases(axis, more[0])
    cut = phases.steps * axis.stride != phases.length
    if not phases.groups or axis.stride > MOST_PHASES or max(phases.steps, length) > MOST_STEPS:
        return None
    if cut and opset_of(node) < SLICE_INPUTS:
        return None
    site = Site(batch, channels, weight.shape[1], axis, phases, _stands_alone(node.outputs[0]))
    return _Plan(node, site, weight, bias)


def _stands_alone(value: ir.Value) -> bool:
    readers = value.consumers()
    return len(readers) == 1 and not value.is_graph_output() and len(readers[0].inputs) == 1


def _apply(plan: _Plan) -> None:
    node, site = plan.node, plan.site
    given = input_of(node)
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    upright = make.reshape(given, [*sizes_of(given), 1], "upright")
    phases: dict[int, ir.Value] = {}
    for number, group in enumerate(site.phases.groups):
        phases.update(zip(group.phases, _phases(make, upright, plan, group, f"phases{number}"), strict=True))
    stride, steps = site.axis.stride, site.phases.steps
    wide = [site.batch, site.made, steps, stride]
    made = make.add("Concat", [phases[phase] for phase in range(stride)], wide, "together", axis=3)
    made = make.reshape(made, [site.batch, site.made, steps * stride], "joined")
    take_place(node, make.part(made, 2, site.phases.skipped, site.phases.length, "cut"))


def _phases(make: Builder, upright: ir.Value, plan: _Plan, group: Group, what: str) -> list[ir.Value]:
    """The phases of `group`, each [N, M, U, 1]."""
    site, count = plan.site, len(group.phases)
    weight = weights_of_group(plan.weight, group)[..., np.newaxis]
    inputs = [upright, make.constant(f"{what}_weight", weight)]
    if plan.bias is not None:
        inputs.append(make.constant(f"{what}_bias", np.tile(plan.bias, count)))
    sizes = [site.batch, count * site.made, site.phases.steps, 1]
    attributes = {"kernel_shape": [group.kernel, 1], "pads": [group.begin, 0, group.end, 0]}
    made = make.add("Conv", inputs, sizes, what, **attributes)
    return [made] if count == 1 else make.split(made, 1, [site.made] * count, f"{what}_apart")
