"""Write a layer normalisation that is spelled out as the one operator.

Before: m = ReduceMean(x), d = x - m, v = ReduceMean(d^2), y = d / Sqrt(v + epsilon) * gamma + beta, over the last axis,
        or over the channels [N, C, T] (`surgery.norm_chains` has the spellings)
After:  y = LayerNormalization(x, gamma, beta); over the channels between two Transposes

The toolkit makes one layer (exNorm) of LayerNormalization, with gamma and beta in it, and of the chain too where it
ends in Div by Sqrt. Of the other spellings (Mul by Reciprocal or 1 / Sqrt or Pow -0.5, Div by Pow 0.5, ReduceSum over a
count) it makes 10 to 13 layers with the CPU's Div among them, and of a beta without a gamma a layer of its own. The
Transposes cost nothing: the layout has the channels last. On [1, 128, 1200] between two convolutions, rk3588: 0.63 ms
modelled instead of 1.04 to 1.32 (measured, 2.3.2; the other targets alike). Where the toolkit would have known the
chain, the operator keeps gamma and beta from passes that rewrite what stands alone.

LayerNormalization is of opset 17. A graph of 13 to 16 becomes one of 17 where all its operators mean the same there.

Left alone: a chain whose parts something else reads, a size of the axis that is not known or 1 (onnxruntime refuses the
operator there), other types, other axes (all axes behind the channels are `fuse_instance_norm`'s), and RMS norms (no
mean is subtracted): the toolkit has no layer for those.

In fp16 exNorm is the better one too: 65.5 dB in the simulator for x of deviation 0.001 to 100 and epsilon 1e-5, where
a chain that the toolkit does not know gives NaN at 100 (d^2 overflows). A public report has exNorm lose precision on a
board (toolkit issue 149); no board was available.

Bounded: by onnxruntime, which computes the variance of LayerNormalization as mean(x^2) - m^2, and that cancels where
the mean is many deviations from zero. The whole Piper voice, 36 of them, gives 98 dB.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.matching import is_one_of, opset_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import (
    CHAINED,
    ENDS,
    Chain,
    ScaleAndBias,
    affine_behind,
    find_chain,
    is_over_steps,
    put_in_place,
    size_along,
)
from surgery.splice import Draft, constant

SINCE = 17
"""The opset of LayerNormalization."""

LOWEST = 13
"""From here on raising the opset's number changes no operator but `CHANGED`."""

CHANGED = frozenset({"BatchNormalization", "RoiAlign"})
"""What means something else in opset 17 than in 13: RoiAlign's default moved by half a pixel, BatchNormalization has
other outputs (ONNX operator changelog; a test holds this against its schemas)."""

MINIMUM_DB = 80.0
"""Measured for 512 numbers with a mean of 0, 3 and 10 deviations: 136, 111 and 87 dB; 7 are left as a reserve."""

DECLARATION = Declaration(
    name="fuse_layer_norm",
    summary="a layer normalisation that is spelled out, over the last axis or the channels, as one operator",
    exactness=Bounded(MINIMUM_DB, "onnxruntime's LayerNormalization cancels for a mean of up to 10 deviations"),
    after=frozenset({"decompose_functions", "fold_constants", "normalise_opset"}),
    matches=CHAINED,
    pays_on=EVERY_TARGET,
)

_CHANNELS = 1
"""The axis of the channels."""

_LEAST_SIZE = 2
"""Of the axis: onnxruntime fails on a LayerNormalization over one number (1.23.2: "must be larger than 1, got 1")."""


@dataclass(frozen=True)
class _Plan:
    """A chain, the axis and its size, and what scales and shifts it."""

    chain: Chain
    axis: int
    size: int
    affine: ScaleAndBias


def fuse_layer_norm() -> Pass:
    """The pass; its hits are the normalisations."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    opset = opset_of(model)
    if opset < SINCE and not _is_raisable(model, opset):
        return Rewritten(model, 0)
    done = rewrite_nodes(model, lambda node: is_one_of(node, ENDS), _plan, _write)
    if done.hits and opset < SINCE:
        done.model.opset_imports[""] = SINCE
    return done


def _is_raisable(model: ir.Model, opset: int) -> bool:
    """Whether every operator of `model` means in opset 17 what it means in its own."""
    alone = opset >= LOWEST and "ai.onnx" not in model.opset_imports and not model.functions
    return alone and not any(node.domain == "" and node.op_type in CHANGED for node in model.graph.all_nodes())


def _plan(node: ir.Node) -> _Plan | None:
    chain = find_chain(node)
    if chain is None or len(chain.axes) != 1:
        return None
    (axis,) = chain.axes
    size = size_along(chain.given, axis)
    if size is None or size < _LEAST_SIZE or axis not in (chain.rank - 1, _CHANNELS):
        return None
    affine = affine_behind(node, axis, chain.rank, size)
    # Over the last of three axes it may be [N, C, T], over the steps: only what scales or shifts it says.
    if is_over_steps(chain) and not any(_varies(number) for number in (affine.scale, affine.shift)):
        return None
    return _Plan(chain, axis, size, affine)


def _varies(number: object) -> bool:
    return isinstance(number, np.ndarray) and bool(np.any(number != number[0]))


def _write(plan: _Plan) -> None:
    chain, affine, draft = plan.chain, plan.affine, Draft()
    last = affine.nodes[-1] if affine.nodes else chain.last
    order = [axis for axis in range(chain.rank) if axis != plan.axis] + [plan.axis]
    turned = order != list(range(chain.rank))
    given = draft.add("Transpose", chain.given, perm=order) if turned else chain.given
    scale = np.ones(plan.size, np.float32) if affine.scale is None else affine.scale
    weights = [constant(number) for number in (scale, affine.shift) if number is not None]
    made = draft.add("LayerNormalization", given, *weights, axis=-1, epsilon=chain.epsilon)
    if turned:
        made = draft.add("Transpose", made, perm=[order.index(axis) for axis in range(chain.rank)])
    put_in_place(last, {*chain.nodes, *affine.nodes}, draft, made, DECLARATION.name)
