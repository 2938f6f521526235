"""Write an instance normalisation the way the NPU does it in the fewest passes over memory.

Before: m = ReduceMean(x), d = x - m, v = ReduceMean(d^2), y = d / Sqrt(v + epsilon), over all axes behind the channels
        of x [N, C, ...] (`surgery.norm_chains` has the spellings)
After:  y = InstanceNormalization(x), scale 1 and bias 0

Before: the same, or InstanceNormalization, and a constant scale and bias for each channel
After:  InstanceNormalization(x), scale 1 and bias 0, and BatchNormalization, mean 0 and variance 1, which has them

Before: either, x [N, C, T] of a T that the Transposes cannot have on the target's NPU (`is_turned_elsewhere`)
After:  m = GlobalAveragePool(x), d = x + Neg(m), v = GlobalAveragePool(d d), y = d / Sqrt(v + epsilon)

The toolkit makes Transpose, exNorm, Transpose of InstanceNormalization, and of the chain too where it ends in Div by
Sqrt; of the other spellings it makes 15 layers. A scale and a bias it puts behind as a Mul and an Add, two passes; a
BatchNormalization is one. On rk3566 and rk3568 those Transposes fall to the CPU unless T is a multiple of 4, and cost
more than the pools (convolutions there). Between two convolutions, modelled ms (measured, 2.3.2):

    [1, 128, 1200]               rk3588   rk3576   rk3566 and rk3568
    chain by Mul and Reciprocal    1.14     1.19     7.90
    known chain, Mul, Add          0.87     0.87     4.56
    this                           0.81     0.81     4.50
    [1, 128, 1201], chain                            7.58
    [1, 128, 1201], this                             4.90

                               rk3588   rk3562   rk3576   rk3566 and rk3568
    [1, 64, 8196], operator     22.53     2.44     2.22    23.71
    [1, 64, 8196], pools        13.09     3.50     3.28    14.58
    [1, 64, 10000], operator     8.75
    [1, 64, 10000], pools        3.47
    [1, 64, 16384], operator              4.87
    [1, 64, 16384], pools                 6.98
    [1, 128, 30720], operator   95.04    fails    18.25
    [1, 128, 30720], pools      24.24    32.06    26.16

Left alone: a chain whose parts something else reads, an unknown number of channels, one step alone, other types, a
scale and bias along the last axis (a layer normalisation, `fuse_layer_norm`'s), a computed scale and bias (AdaIN),
which stay as they are. Only where there is no padding in T is a mean over it the right one; one with a mask is no such
chain (`rewrite_means_as_pools`).

In fp16: exNorm gives 65 dB in the simulator for x of deviation 0.001 to 100, the pools NaN where |d| exceeds 256, d d
being above 65504. A public report has exNorm lose precision on a board (toolkit issue 149); no board was available.

Bounded: by onnxruntime, whose InstanceNormalization computes x * s + (bias - mean * s), s = 1 / sqrt(variance), and
that cancels where the mean is many deviations from zero; by one step alone, whose result is its rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.targets import EVERY_TARGET, check_target
from surgery.declaration import Bounded, Declaration, Pass
from surgery.graph import input_at, input_of
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import (
    CHAINED,
    ENDS,
    Chain,
    affine_behind,
    find_chain,
    is_over_steps,
    put_in_place,
    size_along,
)
from surgery.splice import Draft, constant
from surgery.weights import weight_of

EPSILON = 1e-5
"""ONNX's default."""

ALIGNED_ON = frozenset({"rk3566", "rk3568"})
"""Where the Transposes around exNorm fall to the CPU, unless the steps are a multiple of `TRANSPOSED`."""

LONGEST: Mapping[str | None, float] = {
    "rk3562": 16384, "rk3566": 8192, "rk3568": 8192, "rk3576": inf, "rk3588": 8192, None: 8192,
}  # fmt: skip
"""Most steps that those Transposes have on the NPU of each target; None: of every one (measured, 2.3.2)."""

TRANSPOSED = 4
"""Measured, 2.3.2: on the NPU are 64, 300, 1200, 1204, 1208, 1280 and 7680 steps, not 1201, 1202, 1281 and 7681."""

MINIMUM_DB = 95.0
"""Measured for 1200 numbers with a mean of 0, 3, 10, 30 and 100 deviations: 143, 130, 119, 111 and 104 dB; 9 are left
as a reserve."""

INSTANCE_NORM = Matched("InstanceNormalization", used=frozenset({"epsilon"}))

DECLARATION = Declaration(
    name="fuse_instance_norm",
    summary="an instance normalisation, spelled out or not, as the operator without scale and bias, or by pools",
    exactness=Bounded(MINIMUM_DB, "onnxruntime's InstanceNormalization cancels for a mean of up to 100 deviations"),
    after=frozenset(
        {"decompose_functions", "decompose_missing_kernels", "fold_constants", "fuse_layer_norm", "normalise_opset"}
    ),
    matches=(*CHAINED, INSTANCE_NORM),
    pays_on=EVERY_TARGET,
)


@dataclass(frozen=True)
class _Plan:
    """What to write.

    Attributes:
        reader: the node whose first input is normalised.
        last: makes the result.
        nodes: what goes, as far as nothing else reads it.
        channels: how many.
        epsilon: of the variance.
        factors: scale and bias for each channel [C].
        pooled: by pools.
    """

    reader: ir.Node
    last: ir.Node
    nodes: frozenset[ir.Node]
    channels: int
    epsilon: float
    factors: tuple[NDArray[np.generic], NDArray[np.generic]] | None
    pooled: bool


def fuse_instance_norm(target: str | None = None) -> Pass:
    """The pass; its hits are the normalisations. Without a `target` the longest alone are written by pools.

    Raises:
        ValueError: nothing is known of the target.
    """
    check_target(target)
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _may_be, lambda node: _plan(node, target), _write))


def _may_be(node: ir.Node) -> bool:
    return is_one_of(node, (*ENDS, INSTANCE_NORM))


def _plan(node: ir.Node, target: str | None) -> _Plan | None:
    if is_one_of(node, (INSTANCE_NORM,)):
        return _of_operator(node, target)
    chain = find_chain(node)
    return None if chain is None or not is_over_steps(chain) else _of_chain(chain, target)


def _of_operator(node: ir.Node, target: str | None) -> _Plan | None:
    given = input_of(node)
    scale, bias = (weight_of(input_at(node, place)) for place in (1, 2))
    if given.dtype is not ir.DataType.FLOAT or given.shape is None or scale is None or bias is None:
        return None
    pooled = is_turned_elsewhere(given, target)
    scaled, shifted = bool(np.any(scale != 1)), bool(np.any(bias))
    if scale.shape != bias.shape or scale.ndim != 1 or not (pooled or (scaled and shifted)):
        return None
    epsilon = node.attributes.get_float("epsilon", EPSILON)
    factors = (scale, bias) if scaled or shifted else None
    return _Plan(node, node, frozenset({node}), len(scale), epsilon, factors, pooled)


def _of_chain(chain: Chain, target: str | None) -> _Plan | None:
    given, rank = chain.given, chain.rank
    channels, steps = size_along(given, 1), size_along(given, rank - 1)
    if channels is None or all(size_along(given, axis) == 1 for axis in chain.axes):
        return None
    if steps is not None and any(
        number is not None and np.any(number != number[0])
        for affine in [affine_behind(chain.last, rank - 1, rank, steps)]
        for number in (affine.scale, affine.shift)
    ):
        return None
    affine = affine_behind(chain.last, 1, rank, channels)
    factors = None if affine.scale is None or affine.shift is None else (affine.scale, affine.shift)
    pooled = is_turned_elsewhere(given, target)
    if pooled and _is_by_pools(chain):
        return None
    behind = affine.nodes if factors else ()
    last = behind[-1] if behind else chain.last
    return _Plan(chain.first, last, chain.nodes.union(behind), channels, chain.epsilon, factors, pooled)


def is_turned_elsewhere(given: ir.Value, target: str | None) -> bool:
    """Whether the Transposes around an exNorm of `given` [N, C, T] are not on the NPU of `target`."""
    steps = None if given.shape is None or len(given.shape) != 3 else size_along(given, 2)
    if steps is None:
        return False
    return steps > LONGEST[target] or (target in ALIGNED_ON and steps % TRANSPOSED != 0)


def _is_by_pools(chain: Chain) -> bool:
    """Whether the toolkit takes `chain` for no instance normalisation as it is."""
    return any(node.op_type == "GlobalAveragePool" for node in chain.nodes)


def _write(plan: _Plan) -> None:
    draft, given = Draft(), input_of(plan.reader)
    zeros, ones = (constant(np.full(plan.channels, number)) for number in (0.0, 1.0))
    if plan.pooled:
        made = _by_pools(draft, given, plan.epsilon)
    else:
        made = draft.add("InstanceNormalization", given, ones, zeros, epsilon=plan.epsilon)
    if plan.factors is not None:
        neutral = [constant(np.full(plan.channels, number)) for number in (0.0, 1.0)]
        factors = [constant(number) for number in plan.factors]
        made = draft.add("BatchNormalization", made, *factors, *neutral, epsilon=0.0)
    put_in_place(plan.last, plan.nodes, draft, made, DECLARATION.name)


def _by_pools(draft: Draft, given: ir.Value, epsilon: float) -> ir.Value:
    """x + Neg(m), for x - m: the toolkit spreads m over the steps for a Sub, which reads it so, and for no Add."""
    mean = draft.add("GlobalAveragePool", given)
    off = draft.add("Add", given, draft.add("Neg", mean))
    variance = draft.add("GlobalAveragePool", draft.add("Mul", off, off))
    return draft.add("Div", off, draft.add("Sqrt", draft.add("Add", variance, constant([epsilon]))))
