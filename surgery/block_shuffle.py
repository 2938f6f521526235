"""The nodes that bring the blocks of an axis into the channels: space to depth along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from surgery.conv_axes import static_sizes
from surgery.graph_constants import add_constant
from surgery.time_blocks import Blocks


@dataclass(frozen=True)
class Builder:
    """Puts nodes of one output into `graph`, before the node `before`; `prefix` begins their names."""

    graph: ir.Graph
    before: ir.Node
    prefix: str

    def add(self, op: str, inputs: Sequence[ir.Value], shape: Sequence[int], what: str, **attributes: Any) -> ir.Value:
        """The output, of `shape`, of a new node; it has the type of the first input."""
        node = ir.node(op, inputs, attributes, name=f"{self.prefix}/{what}")
        node.outputs[0].name = f"{self.prefix}/{what}"
        node.outputs[0].shape = ir.Shape(shape)
        node.outputs[0].type = inputs[0].type
        self.graph.insert_before(self.before, node)
        return node.outputs[0]

    def reshape(self, value: ir.Value, shape: Sequence[int], what: str) -> ir.Value:
        """`value` in another shape."""
        return self.add("Reshape", [value, self.sizes(f"{what}_shape", shape)], shape, what)

    def sizes(self, what: str, numbers: Sequence[int]) -> ir.Value:
        """A constant of whole numbers."""
        return add_constant(self.graph, f"{self.prefix}/{what}", np.array(numbers, np.int64))


def to_depth(make: Builder, value: ir.Value, spatial: int, blocks: Blocks) -> ir.Value:
    """`value` [N, C, ..., T, ...] as [N, C * size, ..., count, ...]; T is spatial axis `spatial`.

    The batch joins the channels, and axes of one step are left out, so that nothing has more than four axes where it
    can be helped: the toolkit's own are four.
    """
    value = _of_length(make, value, 2 + spatial, blocks)
    if blocks.size == 1:
        return value
    batch, channels, *lengths = static_sizes(value)
    before, behind = prod(lengths[:spatial]), prod(lengths[spatial + 1 :])
    outer = [batch, channels] if before == behind == 1 else [batch * channels, *([before] if before > 1 else [])]
    inner = [behind] if behind > 1 else []
    cut = make.reshape(value, [*outer, blocks.count, blocks.size, *inner], "blocks")
    # the place in the block goes to behind the channels
    channel = 1 if before == behind == 1 else 0
    order = list(range(len(outer) + 2 + len(inner)))
    order.insert(channel + 1, order.pop(len(outer) + 1))
    sizes = static_sizes(cut)
    turned = make.add("Transpose", [cut], [sizes[place] for place in order], "phases", perm=order)
    lengths[spatial] = blocks.count
    return make.reshape(turned, [batch, channels * blocks.size, *lengths], "depth")


def _of_length(make: Builder, value: ir.Value, axis: int, blocks: Blocks) -> ir.Value:
    """`value` cut or filled up with zeros to whole blocks along `axis`.

    By a Concat, which stays on the NPU where a Pad falls to the CPU (channels that are no multiple of 8). But where
    the number of blocks divides both its parts (few blocks), the toolkit's rule `reduce_reshape_op_around_concat` takes
    the Reshape before it, which needs a real torch (measured, 2.3.2).
    """
    sizes = static_sizes(value)
    if blocks.kept < sizes[axis]:
        bounds = [make.sizes(what, [at]) for what, at in (("start", 0), ("end", blocks.kept), ("axis", axis))]
        sizes[axis] = blocks.kept
        value = make.add("Slice", [value, *bounds], sizes, "kept")
    if not blocks.added:
        return value
    filled = [size + (blocks.added if place == axis else 0) for place, size in enumerate(sizes)]
    if blocks.added % blocks.count == 0:
        pads = [0] * len(sizes) + [made - size for made, size in zip(filled, sizes, strict=True)]
        return make.add("Pad", [value, make.sizes("pads", pads)], filled, "filled")
    assert value.dtype is not None
    sizes[axis] = blocks.added
    zeros = add_constant(make.graph, f"{make.prefix}/zeros", np.zeros(sizes, value.dtype.numpy()), value.dtype)
    return make.add("Concat", [value, zeros], filled, "filled", axis=axis)
