"""Give every Clip two real bounds that fp16 holds, or take it away.

The toolkit writes a missing bound as -3.4e38, minus infinity in fp16; a public report has such a Clip all zero on
rk3588 (toolkit-facts). Its simulator is right on it, but for a missing bound that the input passes: NaN, where a bound
of 65504 gives 65504 (measured, rknn-toolkit2 2.3.2, rk3588).

Before:  Clip(x), Clip(x, low), Clip(x, , high)          After:  x, Clip(x, low, 65504), Clip(x, -65504, high)
Before:  bounds past +-65504, infinite, of shape [1]     After:  scalars within +-65504
Before:  a bound that is computed or an input            After:  Max(x, low), -Max(-x, -high)
Before:  an int32 Clip; an int64 one with a bound past   After:  the same Max: the toolkit dies of an int32 Clip
         +-65504 or without one                                  ("Type Error"), and has no kernel for Min

The result is min(max(x, low), high), so that it is high where low is larger (onnxruntime). Up to opset 10 the bounds
are attributes. An int64 Clip of small bounds stays as it is (right in the simulator, on the CPU).

Preconditions: bounds of one value that are numbers; a float, int32 or int64 input.

Exact for inputs within +-65504, and fp16 has none outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import graph_of, input_at
from surgery.graph_constants import add_constant
from surgery.matching import Matched, is_one_of, opset_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.splice import Draft, constant, splice
from surgery.weights import weight_of

LARGEST = 65504
"""Largest finite fp16 (IEEE 754)."""

NUMBERS = "bounds that are numbers"
ONE_VALUE = "bounds of one value"
KNOWN_TYPE = "a float, int32 or int64 input"

DECLARATION = Declaration(
    name="normalise_clip_bounds",
    summary="every Clip has two real bounds within fp16, or is gone",
    exactness=Exact("the same clip for every number that fp16 holds"),
    after=frozenset({"decompose_quantised", "fold_constants", "normalise_double", "normalise_float32"}),
    matches=(Matched("Clip"),),
    preconditions=(NUMBERS, ONE_VALUE, KNOWN_TYPE),
)

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
_WHOLE = (ir.DataType.INT32, ir.DataType.INT64)

_BOUNDS_AS_INPUTS_SINCE = 11
"""Before it the bounds of Clip are attributes (ONNX operator changelog)."""

Bound = float | int | ir.Value | None
"""A number, a computed tensor, or none."""


@dataclass(frozen=True)
class _Clip:
    """A Clip to rewrite: its bounds, None where no number of its type (float: of fp16) is past it."""

    node: ir.Node
    low: Bound
    high: Bound
    dtype: ir.DataType


def normalise_clip_bounds() -> Pass:
    """The pass; its hits are the Clip nodes it changed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _replace)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _look(node: ir.Node) -> _Clip | Refused | None:
    """The plan for one Clip; None where it stays as it is."""
    values = [input_at(node, place) for place in (1, 2)]
    constants = [weight_of(value) for value in values]
    given = [_attribute(node, name) for name in ("min", "max")]
    for value, tensor in zip(values, constants, strict=True):
        if tensor is not None and tensor.size != 1:
            got = f"'{value.name if value else ''}' of shape {list(tensor.shape)}"
            return Refused(node_label(node), ONE_VALUE, "a scalar", got)
    numbers: list[Bound] = [
        attribute if value is None else value if tensor is None else tensor.reshape(()).item()
        for attribute, value, tensor in zip(given, values, constants, strict=True)
    ]
    if any(isinstance(bound, float) and np.isnan(bound) for bound in numbers):
        return Refused(node_label(node), NUMBERS, "a number", "NaN")
    typed = [value.dtype for value in [*values, *node.inputs[:1]] if value is not None]
    dtype = next((known for known in typed if known is not None), ir.DataType.FLOAT)
    if dtype in _FLOATS:
        low, high = _ordered(_within(numbers[0], -1), _within(numbers[1], 1))
        plain = [tensor is not None and tensor.shape == () for tensor in constants]
        kept = numbers == [low, high] and None not in numbers and (all(plain) or None not in given)
        return None if kept else _Clip(node, low, high, dtype)
    return _whole(node, numbers, dtype)


def _whole(node: ir.Node, numbers: list[Bound], dtype: ir.DataType) -> _Clip | Refused | None:
    if numbers == [None, None]:
        return _Clip(node, None, None, dtype)
    if dtype not in _WHOLE:
        return Refused(node_label(node), KNOWN_TYPE, "float32, int32 or int64", str(dtype))
    limits = np.iinfo(dtype.numpy())
    low, high = (None if bound == end else bound for bound, end in zip(numbers, (limits.min, limits.max), strict=True))
    small = all(isinstance(bound, int) and abs(bound) <= LARGEST for bound in (low, high))
    return None if small and dtype == ir.DataType.INT64 else _Clip(node, low, high, dtype)


def _attribute(node: ir.Node, name: str) -> float | None:
    attribute = node.attributes.get(name)
    return None if attribute is None else attribute.as_float()


def _within(bound: Bound, side: int) -> Bound:
    """The bound of a float Clip; None where fp16 has no number past it."""
    if bound is None or isinstance(bound, ir.Value):
        return bound
    if bound * side > LARGEST:
        return None
    return float(max(bound, -LARGEST) if side > 0 else min(bound, LARGEST))


def _ordered(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """The same clip with a low that is not above high."""
    if isinstance(low, float) and isinstance(high, float):
        return min(low, high), high
    return low, high


def _replace(clip: _Clip) -> None:
    node, x = clip.node, clip.node.inputs[0]
    graph = graph_of(node)
    assert x is not None
    if clip.low is None and clip.high is None:
        _bypass(graph, node, x)
    elif clip.dtype in _FLOATS and not any(isinstance(bound, ir.Value) for bound in (clip.low, clip.high)):
        _set_bounds(graph, node, *_numbers(clip), clip.dtype)
    else:
        draft = Draft()
        splice(node, draft.nodes, [_by_max(draft, x, clip)], DECLARATION.name)


def _bypass(graph: ir.Graph, node: ir.Node, x: ir.Value) -> None:
    """Take `node` away; a graph output keeps its name, so an Identity stays."""
    made = node.outputs[0]
    if made.is_graph_output():
        draft = Draft()
        splice(node, draft.nodes, [draft.add("Identity", x)], DECLARATION.name)
    else:
        made.replace_all_uses_with(x)
        graph.remove(node, safe=True)


def _numbers(clip: _Clip) -> tuple[float, float]:
    low = -LARGEST if clip.low is None else clip.low
    high = LARGEST if clip.high is None else clip.high
    assert not isinstance(low, ir.Value)
    assert not isinstance(high, ir.Value)
    return low, high


def _set_bounds(graph: ir.Graph, node: ir.Node, low: float, high: float, dtype: ir.DataType) -> None:
    if opset_of(graph) < _BOUNDS_AS_INPUTS_SINCE:
        node.attributes["min"], node.attributes["max"] = ir.AttrFloat32("min", low), ir.AttrFloat32("max", high)
        return
    stem = f"{node.outputs[0].name}.{DECLARATION.name}"
    bounds = [
        add_constant(graph, f"{stem}.{what}", np.array(number, dtype.numpy()), dtype)
        for what, number in (("min", low), ("max", high))
    ]
    node.resize_inputs(3)
    for place, bound in enumerate(bounds, 1):
        node.replace_input_with(place, bound)


def _by_max(draft: Draft, x: ir.Value, clip: _Clip) -> ir.Value:
    """min(max(x, low), high), each by a Max; a constant bound of a float Clip by a Clip, which runs on the NPU."""
    low, high = clip.low, clip.high
    if low is not None:
        x = _bounded(draft, x, low, LARGEST, clip.dtype) if _may_clip(low, clip) else _max(draft, x, low, clip.dtype)
    if high is not None:
        if _may_clip(high, clip):
            return _bounded(draft, x, -LARGEST, high, clip.dtype)
        negated = draft.add("Neg", high) if isinstance(high, ir.Value) else -high
        return draft.add("Neg", _max(draft, draft.add("Neg", x), negated, clip.dtype))
    return x


def _may_clip(bound: Bound, clip: _Clip) -> bool:
    return clip.dtype in _FLOATS and not isinstance(bound, ir.Value)


def _bounded(draft: Draft, x: ir.Value, low: Bound, high: Bound, dtype: ir.DataType) -> ir.Value:
    return draft.add("Clip", x, constant(low, dtype), constant(high, dtype))


def _max(draft: Draft, x: ir.Value, bound: float | int | ir.Value, dtype: ir.DataType) -> ir.Value:
    return draft.add("Max", x, bound if isinstance(bound, ir.Value) else constant(bound, dtype))
