"""Copy the few steps that a reflecting or repeating Pad adds to an axis longer than the hardware's fields hold.

Before: y = Pad(x, p in front, q behind, mode reflect or edge), x [1, C, T], p + T + q > 8192, p + q <= 16
After:  y = Concat of p single steps of x, x, and q single steps

The toolkit's own form numbers the steps it makes in a field that is too narrow (0x4030; 0x4020 on rk3562 and rk3576).
This one costs a pass over x more (rk3588, C = 16, T = 30720, four steps a side: 1.51 modelled ms instead of 1.32),
and a step that is cut from a long axis logs 0x5048 on rk3566, rk3568 and rk3588, of which engines are known that run
(measured, 2.3.2).

Left alone: what fits, zeros, other axes, more steps, pads that are computed or take away, other ranks and batches.

Exact: the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from contracts.axis_fields import COPYING_MODES, padded_overflow
from surgery.declaration import Declaration, Exact, Pass
from surgery.graph import graph_of, input_at, input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of, opset_of
from surgery.node_rewrites import rewrite_nodes
from surgery.weights import weight_of

PAD = Matched("Pad", used=frozenset({"mode"}))

DECLARATION = Declaration(
    name="rewrite_long_pad",
    summary="single steps in front of and behind more than 8192 steps, for a Pad that copies them",
    exactness=Exact("the same values"),
    after=frozenset({"decompose_negative_pads", "fold_constants", "normalise_defaults", "normalise_opset"}),
    matches=(PAD,),
)

_PADS = 1
"""Input position."""

_LEAST_OPSET = 13
"""What `normalise_opset` makes of lower ones; pads and the bounds of a Slice became inputs in 11 and 10."""

_MOST_STEPS = 16
"""Copied one by one: as many Slice layers."""

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})


@dataclass(frozen=True)
class _Plan:
    """A Pad, and the steps of its input that stand in front and behind."""

    node: ir.Node
    front: tuple[int, ...]
    behind: tuple[int, ...]


def rewrite_long_pad() -> Pass:
    """The pass; its hits are Pads."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, _is_copying, _plan, _apply))


def _is_copying(node: ir.Node) -> bool:
    return is_one_of(node, (PAD,)) and _mode(node) in COPYING_MODES and opset_of(node) >= _LEAST_OPSET


def _mode(node: ir.Node) -> str:
    return node.attributes.get_string("mode") or "constant"


def _plan(node: ir.Node) -> _Plan | None:
    given = input_of(node)
    sizes, pads = static_shape(given), weight_of(input_at(node, _PADS))
    if sizes is None or pads is None or given.dtype not in _FLOATS or any(node.inputs[_PADS + 1 :]):
        return None
    counts = pads.ravel().tolist()
    if sizes[:1] != (1,) or len(counts) != 2 * len(sizes) or min(counts) < 0:
        return None
    before, behind = counts[len(sizes) - 1], counts[-1]
    if not padded_overflow(sizes, before, behind) or sum(counts) != before + behind or sum(counts) > _MOST_STEPS:
        return None
    if _mode(node) == "edge":
        return _Plan(node, (0,) * before, (sizes[-1] - 1,) * behind)
    front = tuple(range(before, 0, -1))
    return _Plan(node, front, tuple(sizes[-1] - 2 - place for place in range(behind)))


def _apply(plan: _Plan) -> None:
    node = plan.node
    given = input_of(node)
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{node.outputs[0].name}")
    steps = {at: _step(make, given, at) for at in dict.fromkeys((*plan.front, *plan.behind))}
    parts = [*(steps[at] for at in plan.front), given, *(steps[at] for at in plan.behind)]
    sizes = sizes_of(given)
    sizes[-1] += len(plan.front) + len(plan.behind)
    take_place(node, make.add("Concat", parts, sizes, "joined", axis=len(sizes) - 1))


def _step(make: Builder, value: ir.Value, at: int) -> ir.Value:
    """Step `at` of the last axis."""
    sizes = sizes_of(value)
    axis, sizes[-1] = len(sizes) - 1, 1
    names = (f"start{at}", f"end{at}", f"axis{at}")
    bounds = [make.sizes(name, [number]) for name, number in zip(names, (at, at + 1, axis), strict=True)]
    return make.add("Slice", [value, *bounds], sizes, f"step{at}")
