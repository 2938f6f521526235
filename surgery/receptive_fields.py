"""How far the samples of a decoder reach back: the frames that each value must have around those that are emitted.

A step of a Conv or ConvTranspose reads, with stride s, dilation d, kernel k and `pad` steps put before the input
(ONNX operator specification):

    Conv            out i reads in s i - pad + d t,             0 <= t < k
    ConvTranspose   out i reads in j where s j - pad + d t = i, 0 <= t < k

so that the steps from a to b - 1 read those from s a - pad to s (b - 1) - pad + d (k - 1), and those from
ceil((a + pad - d (k - 1)) / s) to floor((b - 1 + pad) / s). All else keeps the step. Going back so from the samples of
one frame gives each value's steps, which are told in whole frames, rounded up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from surgery.conv_axes import kernel_of, numbers
from surgery.convolution_length import CONV, CONV_TRANSPOSE
from surgery.matching import is_one_of

Steps = tuple[int, int]
"""From the first, included, to the last, not included."""


def context_frames(
    nodes: Sequence[ir.Node], rate_of: Mapping[ir.Value, int], outputs: Collection[ir.Value]
) -> dict[ir.Value, int]:
    """For each value the frames needed on either side of the frames whose samples are wanted, the larger side.

    Args:
        nodes: all between the first of the values and `outputs`, in topological order; each a convolution whose output
            is exactly its rate times its input's length (`surgery.convolution_length`), or one that keeps each step.
        rate_of: steps a frame of all their values that have frames.
        outputs: those whose samples are wanted.
    """
    needed: dict[ir.Value, Steps] = {value: (0, rate_of[value]) for value in outputs if value in rate_of}
    for node in reversed(nodes):
        made = [needed[value] for value in node.outputs if value in needed]
        if not made:
            continue
        steps = _read_by(node, _hull(made))
        for value in node.inputs:
            if value is not None and value in rate_of:
                needed[value] = _hull([steps, *([needed[value]] if value in needed else [])])
    return {value: _frames(steps, rate_of[value]) for value, steps in needed.items()}


def _read_by(node: ir.Node, made: Steps) -> Steps:
    """The steps of the input of `node` that these of its output are made of."""
    if not is_one_of(node, (CONV, CONV_TRANSPOSE)):
        return made
    (kernel,) = kernel_of(node)
    (stride,), (dilation,) = numbers(node, "strides", [1]), numbers(node, "dilations", [1])
    pad = numbers(node, "pads", [0, 0])[0]
    first, last, reach = made[0], made[1] - 1, dilation * (kernel - 1)
    if node.op_type == CONV.op:
        return stride * first - pad, stride * last - pad + reach + 1
    return -(-(first + pad - reach) // stride), (last + pad) // stride + 1


def _hull(all_steps: Sequence[Steps]) -> Steps:
    return min(first for first, _ in all_steps), max(end for _, end in all_steps)


def _frames(steps: Steps, rate: int) -> int:
    """On either side of the one frame, rounded up."""
    first, end = steps
    return max(0, -(first // rate), -(-(end - rate) // rate))


def bottlenecks(nodes: Sequence[ir.Node], start: ir.Value, framed: Collection[ir.Value]) -> list[ir.Value]:
    """The values among `framed` that every path from `start` through `nodes` goes by, in order, `start` first.

    Args:
        nodes: in topological order, each on a path from `start` to an output.
        start: the first value.
        framed: `start` and what depends on it.
    """
    last_read = {value: place for place, node in enumerate(nodes) for value in node.inputs if value in framed}
    found, alive = [start], {start}
    for place, node in enumerate(nodes):
        alive = {value for value in alive if last_read.get(value, -1) > place}
        alive.update(value for value in node.outputs if value in last_read)
        if len(alive) == 1:
            found += alive - set(found)
    return found
