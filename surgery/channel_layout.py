"""Which tensors the compiler has laid in memory by channels, as convolutions read and make them."""

from __future__ import annotations

import onnx_ir as ir

from surgery.elementwise import ELEMENTWISE
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of

_LAID = "whatever it computes, its data have channels on the second axis"
_PLACING = dict.fromkeys(("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"), _LAID)

CONVOLUTIONS = (
    Matched("Conv", irrelevant=_PLACING),
    Matched("ConvTranspose", irrelevant={**_PLACING, "output_padding": _LAID, "output_shape": _LAID}),
)


def lies_in_channels(value: ir.Value) -> bool:
    """Whether `value` is known to lie so: a convolution made it, or what it is computed of element by element.

    What is spread to its shape on the way does not count. Between MatMuls the compiler lays tensors in rows, and turns
    them for a convolution and for a BatchNormalization, a pass each way; and a LayerNormalization takes in what scales
    and shifts it, a Transpose between (measured, 2.3.2).
    """
    shape, waiting, seen = static_shape(value), [value], set[ir.Value]()
    while waiting:
        at = waiting.pop()
        node = at.producer()
        if node is None or at in seen or static_shape(at) != shape:
            continue
        seen.add(at)
        if is_one_of(node, CONVOLUTIONS):
            return True
        if is_one_of(node, ELEMENTWISE):
            waiting.extend(read for read in node.inputs if read is not None)
    return False
