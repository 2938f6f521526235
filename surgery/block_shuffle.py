"""The nodes that bring the blocks of an axis into the channels: space to depth along one axis."""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from surgery.graph_builder import Builder, sizes_of
from surgery.time_blocks import Blocks


def to_depth(make: Builder, value: ir.Value, spatial: int, blocks: Blocks) -> ir.Value:
    """`value` [N, C, ..., T, ...] as [N, C * size, ..., count, ...]; T is spatial axis `spatial`.

    The batch joins the channels, and axes of one step are left out, so that nothing has more than four axes where it
    can be helped: the toolkit's own are four.
    """
    value = make.first(value, 2 + spatial, blocks.kept, "kept")
    value = make.filled(value, 2 + spatial, 0, blocks.added, blocks.count)
    if blocks.size == 1:
        return value
    batch, channels, *lengths = sizes_of(value)
    before, behind = prod(lengths[:spatial]), prod(lengths[spatial + 1 :])
    outer = [batch, channels] if before == behind == 1 else [batch * channels, *([before] if before > 1 else [])]
    inner = [behind] if behind > 1 else []
    cut = make.reshape(value, [*outer, blocks.count, blocks.size, *inner], "blocks")
    # the place in the block goes to behind the channels
    channel = 1 if before == behind == 1 else 0
    order = list(range(len(outer) + 2 + len(inner)))
    order.insert(channel + 1, order.pop(len(outer) + 1))
    sizes = sizes_of(cut)
    turned = make.add("Transpose", [cut], [sizes[place] for place in order], "phases", perm=order)
    lengths[spatial] = blocks.count
    return make.reshape(turned, [batch, channels * blocks.size, *lengths], "depth")
