"""The arithmetic of ONNX's quantised values: x is about (q - zero_point) * scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.declaration import Bounded
from surgery.matching import ONNX_DOMAINS
from surgery.weights import tensor_of

Numbers = NDArray[Any]

LEVELS: Mapping[ir.DataType, tuple[int, int]] = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT4: (0, 15),
}
"""Lowest and highest value of each type that QuantizeLinear saturates to (ONNX operator specification)."""

EIGHT_BITS = Bounded(
    12.0,
    "what differs is the rounding of activations to 8 bits: (range / 255)^2 / 12 for a tensor lies 52.9 dB - 20 log10("
    "peak / rms) below it (37 dB at a peak of 6 rms), and that of many tensors adds up: measured on graphs of 1 to 24 "
    "layers, 53 to 18.6 dB; a wrong scale is a copy of half or twice the size, 6 dB at most",
)
"""How near a graph without the rounding is to the one with it."""

CHOOSING = frozenset(
    {"Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
"""Operators whose output holds values of their first input and no others."""

_CARRYING = CHOOSING | {"DepthToSpace", "MaxPool", "SpaceToDepth", "Split"}
"""Operators that do to quantised values what they do to the numbers; the largest of both is the same."""


def carries(node: ir.Node | None) -> bool:
    """Whether `node` does to the quantised values of its first input what it does to numbers, but for rounding."""
    if node is None or node.domain not in ONNX_DOMAINS:
        return False
    between = node.op_type == "Resize" and node.attributes.get_string("mode", "nearest") in ("nearest", "linear")
    return between or node.op_type in _CARRYING


@dataclass(frozen=True)
class Chosen:
    """Values of the constant `weight`, chosen by `chain` (from the last node backwards), as an embedding has them."""

    weight: ir.Value
    tensor: ir.TensorProtocol
    chain: tuple[ir.Node, ...]


def chosen_from(value: ir.Value | None) -> Chosen | None:
    """What `value` is chosen from, with no node in between where it is the constant itself; None for any other."""
    chain: list[ir.Node] = []
    while value is not None and (node := value.producer()) is not None and _chooses(node):
        chain.append(node)
        value = node.inputs[0]
    tensor = tensor_of(value)
    return None if value is None or tensor is None else Chosen(value, tensor, tuple(chain))


def _chooses(node: ir.Node) -> bool:
    return node.domain in ONNX_DOMAINS and node.op_type in CHOOSING


def dequantised(
    quantised: ir.TensorProtocol,
    scale: ir.TensorProtocol,
    zero_point: ir.TensorProtocol | None,
    axis: int = 1,
    block: int = 0,
) -> Numbers:
    """(q - zero_point) * scale as DequantizeLinear computes it, in the type of `scale`.

    Args:
        quantised: q, integers.
        scale: one for the tensor; one for each index of `axis`; or, with `block`, one for each `block` of them.
        zero_point: like `scale`; None is 0.
        axis: of several scales.
        block: indices of `axis` that share a scale; 0 where there are no blocks.
    """
    q = quantised.numpy()
    wide = np.int32 if quantised.dtype != ir.DataType.INT32 else np.int64
    factor = _spread(scale.numpy(), q.ndim, axis, block, q.shape)
    centred: Numbers = q.astype(wide)
    if zero_point is not None:
        centred -= _spread(zero_point.numpy().astype(wide), q.ndim, axis, block, q.shape)
    product: Numbers = centred.astype(factor.dtype)
    product *= factor
    return product


def saturation(scale: float, zero_point: int, dtype: ir.DataType) -> tuple[float, float]:
    """The lowest and the highest number that a quantised value can stand for."""
    low, high = LEVELS[dtype]
    return (low - zero_point) * scale, (high - zero_point) * scale


def _spread(values: Numbers, rank: int, axis: int, block: int, shape: tuple[int, ...]) -> Numbers:
    """`values` so that they multiply a tensor of that shape."""
    if values.size == 1:
        return values.reshape(())
    if block:
        return np.repeat(values, block, axis=axis)[tuple(slice(size) for size in shape)]
    aligned = [1] * rank
    aligned[axis] = values.size
    return values.reshape(aligned)
