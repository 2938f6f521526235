"""Rewrite what spreads an operand along, or beside, a time axis longer than the hardware's fields hold.

Before: x - m, m - x or x / m, m computed [1, C, 1] or one number; x * k, k computed [1, 1, T]; x [1, C, T], T > 8192
After:  x + (-m), (-x) + m, x * (1 / m); and x * Expand(k, [1, C, T]), one Expand for all products with k
        where 1 / m = Slice(Clip(e, 1, 1) / e, the first step), e = Expand(m, [1, C, 8])

Sub and Div spread m along the time by an Expand layer of their own, and a product with k reads it for all channels at
once: both overflow fields, 0x4030 among them (rk3562 and rk3576: only Sub and Div). Add and Mul spread m in the layer
itself, and an Expand along the channels fits at any length. Nothing else has to be folded: the other operators of long
axes log nothing fatal (`contracts.axis_fields`, which has the measurements).

Modelled ms between two convolutions (rk3588, C = 16, T = 30720), before, so, and with the axis folded into two by a
Reshape in and out, which was not done: x less its mean 1.79, 1.60, 1.94; x * k 1.34, 1.47, 1.53, which would overflow
0x5048 still. On rk3566 and rk3568 the Expand of a mask that is an input takes a Reshape on the CPU, 0.3 ms.

Left alone: what fits, constants, other ranks, more than one batch or one channel only, m / x (the gate
`structure.fields` names what overflows of these, and the log judges the rest), and an instance normalisation that the
toolkit makes one layer of, exNorm, which spreads nothing (`fuse_instance_norm`'s).

Exact: a difference is the sum with the negative to the bit. 1 / m is one rounding more, and beyond the fp16 range
where |m| is below 1.5e-5. The detour by 8 steps keeps it on the NPU: the toolkit puts a Div of single steps, or one by
which a constant is divided, on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from contracts.axis_fields import SPREADING, mask_overflow, spread_overflow
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph import graph_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.inferred import static_shape
from surgery.matching import is_one_of, opset_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import CHAINED, DIV, GLOBAL_POOL, MUL, SUB, Chain, find_chain
from surgery.weights import tensor_of

SPREADERS = (DIV, MUL, SUB)

DECLARATION = Declaration(
    name="rewrite_long_broadcast",
    summary="a computed mean, scale or mask that is spread over more than 8192 steps, in a form that the fields hold",
    exactness=Exact("a difference is the sum with the negative; a quotient, the product with the reciprocal"),
    after=frozenset(
        {
            "decompose_missing_kernels",
            "fold_constants",
            "fuse_instance_norm",
            "normalise_mean_axes",
            "normalise_opset",
            "normalise_scalar_inputs",
        }
    ),
    matches=CHAINED,
)

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})

_BINARY = 2

_LEAST_OPSET = 13
"""What `normalise_opset` makes of lower ones; Clip and Slice as they are written here came with 11 and 10."""

_NPU_STEPS = 8
"""Steps of a Div that the toolkit keeps on the NPU (measured, 2.3.2)."""

_Spread = dict[tuple[ir.Value, int], ir.Value]
"""The Expand of a mask to so many channels."""


@dataclass(frozen=True)
class _Plan:
    """A node, and the places of its full operand and of the one that is spread."""

    node: ir.Node
    wide: int
    narrow: int


def rewrite_long_broadcast() -> Pass:
    """The pass; its hits are nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    spread: _Spread = {}
    known = lru_cache(_known_norms)
    return rewrite_nodes(
        model, _may_spread, lambda node: _plan(node, known(graph_of(node))), lambda plan: _apply(plan, spread)
    )


def _known_norms(graph: ir.Graph) -> frozenset[ir.Node]:
    """The nodes of normalisations that the toolkit knows: with ReduceMean, and a Div at the end (measured, 2.3.2)."""
    found = [find_chain(node) for node in graph if is_one_of(node, (DIV,))]
    chains = [chain for chain in found if chain is not None]
    return frozenset(node for chain in chains if not _has_pools(chain) for node in chain.nodes)


def _has_pools(chain: Chain) -> bool:
    return any(is_one_of(node, (GLOBAL_POOL,)) for node in chain.nodes)


def _may_spread(node: ir.Node) -> bool:
    return is_one_of(node, SPREADERS) and len(node.inputs) == _BINARY and opset_of(node) >= _LEAST_OPSET


def _plan(node: ir.Node, known: frozenset[ir.Node]) -> _Plan | None:
    if node in known:
        return None
    for wide in (0,) if node.op_type == "Div" else (0, 1):
        if _overflows(node.op_type, node.inputs[wide], node.inputs[1 - wide]):
            return _Plan(node, wide, 1 - wide)
    return None


def _overflows(op: str, wide: ir.Value | None, narrow: ir.Value | None) -> bool:
    """Whether `op` spreads `narrow`, which is computed, over too many steps of `wide`, of one batch."""
    if wide is None or narrow is None or wide.dtype not in _FLOATS or tensor_of(narrow) is not None:
        return False
    full, part = static_shape(wide), static_shape(narrow)
    if full is None or part is None or full[:1] != (1,):
        return False
    return spread_overflow(full, part) if op in SPREADING else mask_overflow(full, part)


def _apply(plan: _Plan, spread: _Spread) -> None:
    node = plan.node
    wide, narrow = node.inputs[plan.wide], node.inputs[plan.narrow]
    assert wide is not None
    assert narrow is not None
    sizes = sizes_of(wide)
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    if node.op_type == "Mul":
        if (narrow, sizes[1]) not in spread:
            spread[narrow, sizes[1]] = make.add("Expand", [narrow, make.sizes("sizes", sizes)], sizes, "spread")
        made = make.add("Mul", [wide, spread[narrow, sizes[1]]], sizes, "product")
    elif node.op_type == "Div":
        made = make.add("Mul", [wide, _reciprocal(make, narrow, sizes[1])], sizes, "product")
    else:
        taken = node.inputs[1]
        assert taken is not None
        negative = make.add("Neg", [taken], sizes_of(taken), "negative")
        made = make.add("Add", [wide, negative] if taken is narrow else [negative, narrow], sizes, "sum")
    take_place(node, made)


def _reciprocal(make: Builder, value: ir.Value, channels: int) -> ir.Value:
    """1 / `value` as [1, channels, 1], on the NPU."""
    assert value.dtype is not None
    sizes = [1, channels, _NPU_STEPS]
    steps = make.add("Expand", [value, make.sizes("steps_sizes", sizes)], sizes, "steps")
    one = make.constant("one", np.ones((), value.dtype.numpy()))
    ones = make.add("Clip", [steps, one, one], sizes, "ones")
    return make.first(make.add("Div", [ones, steps], sizes, "reciprocals"), 2, 1, "reciprocal")
