"""Which integers an input may hold: those that index an axis."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from contracts.errors import Refusal
from gates.graphs import with_shapes
from surgery.matching import ONNX_DOMAINS

_PASSES_ON = frozenset(
    {"Cast", "CastLike", "Clip", "Concat", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
     "Identity", "Max", "Min", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
     "Where"}
)  # fmt: skip
"""What gives on values of what it reads, or others that the graph brings in itself."""

_FIRST_ONLY = _PASSES_ON - {"Concat", "Max", "Min", "Where"}
"""Of these, what gives on values of its first input only; behind it stand sizes, axes, bounds or indices."""

_BY_AXIS = frozenset({"Gather", "GatherElements", "ScatterElements", "Scatter"})
_BY_TUPLE = frozenset({"GatherND", "ScatterND"})

_DATA, _INDICES = 0, 1


def index_sizes(model: ir.Model) -> dict[str, int]:
    """For each input of `model` that indexes an axis of known size: that size, the smallest of several.

    An index may go through nodes that move or cast it (`_PASSES_ON`), into nested graphs and local functions.
    """
    model = _seen_through(model)
    found: dict[str, int] = {}
    for value in model.graph.inputs:
        sizes = [size for size in _sizes(value) if size > 0]
        if value.name is not None and sizes:
            found[value.name] = min(sizes)
    return found


def _seen_through(model: ir.Model) -> ir.Model:
    """A copy with local functions inlined, and the shapes that inference finds; without them where it fails."""
    try:
        if model.functions:
            model = model.clone()
            InlinePass()(model)
        return with_shapes(model)
    except (Refusal, RuntimeError, ValueError):  # no valid ONNX: the gates say so
        return model


def _sizes(value: ir.Value) -> Iterator[int]:
    """Sizes of the axes that `value`, or what holds its values, indexes."""
    seen, todo = {value}, [value]
    while todo:
        for use in todo.pop().uses():
            yield from _indexed(use.node, use.idx)
            passes = use.node.op_type in _PASSES_ON and use.node.domain in ONNX_DOMAINS
            if passes and not (use.idx > 0 and use.node.op_type in _FIRST_ONLY):
                new = [output for output in use.node.outputs if output not in seen]
                seen.update(new)
                todo.extend(new)


def _indexed(node: ir.Node, position: int) -> Iterator[int]:
    """Sizes of the axes of `node` that its input at `position` indexes."""
    if node.domain not in ONNX_DOMAINS:
        return
    if node.op_type == "OneHot" and position == _DATA and len(node.inputs) > 1 and node.inputs[1] is not None:
        depth = ir.convenience.get_const_tensor(node.inputs[1])
        if depth is not None and depth.size == 1:
            yield int(depth.numpy().reshape(-1)[0])
    data = node.inputs[_DATA] if node.inputs else None
    if position != _INDICES or data is None or data.shape is None:
        return
    sizes = list(data.shape)
    for axis in _axes(node, len(sizes)):
        if -len(sizes) <= axis < len(sizes) and isinstance(size := sizes[axis], int):
            yield size


def _axes(node: ir.Node, rank: int) -> list[int]:
    """The axes of the data, of this rank, that the second input of `node` indexes."""
    if node.op_type in _BY_AXIS:
        return [_integer(node, "axis")]
    indices = node.inputs[_INDICES] if len(node.inputs) > _INDICES else None
    if node.op_type in _BY_TUPLE and indices is not None and indices.shape:
        first, count = _integer(node, "batch_dims"), indices.shape[-1]
        return list(range(first, first + min(count, rank))) if isinstance(count, int) else []
    return []


def _integer(node: ir.Node, name: str) -> int:
    attribute = node.attributes.get(name)
    return 0 if attribute is None else attribute.as_int()
