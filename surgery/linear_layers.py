"""Layers that are linear in their data, by constant weights; and their weights with other scales and biases."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.graph import graph_of, input_at
from surgery.graph_constants import add_constant
from surgery.matching import Matched, is_one_of
from surgery.scopes import drop_unused_weights
from surgery.weights import weight_of

LARGEST_HALF = float(np.finfo(np.float16).max)
"""Largest weight or bias of an fp16 engine: 65504."""

HALF_ROUNDING = 2.0**-11
"""What rounding to fp16 changes a number of its normal range by at most, relative to it (ten stored bits of mantissa).
A channel of weights that rounds no worse as a whole has lost nothing to the subnormal range: the many trained weights
that are close to zero have the fixed step of that range, 6e-8, and are no matter beside the others."""

_PLACES = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")
_PLACING = dict.fromkeys(_PLACES, "says which steps are summed; a factor of a channel is the same at every step")

CONV = Matched("Conv", used=frozenset({"group"}), irrelevant=_PLACING)
CONV_TRANSPOSE = Matched(
    "ConvTranspose",
    used=frozenset({"group"}),
    irrelevant={**_PLACING, **dict.fromkeys(("output_padding", "output_shape"), "as the pads")},
)
GEMM = Matched(
    "Gemm",
    used=frozenset({"beta", "transA", "transB"}),
    irrelevant={"alpha": "a factor of the product, beside the ones that are looked at"},
)
MATMUL = Matched("MatMul")

LAYERS = (CONV, CONV_TRANSPOSE, GEMM, MATMUL)

FARTHEST = 64
"""How many nodes there may be between a constant and its layer: on graphs in use a handful; it bounds a recursion."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A Conv, ConvTranspose, Gemm or MatMul of float32, whose weights and bias are constants.

    Attributes:
        node: its data come first, then its weights.
        weight: [M, C / group, k...] or [C, M / group, k...], C the channels of its input and M of its output.
        bias: [M]; None where it has none.
        group: in how many groups.
        makes_first: the first axis of the weights is that of the output's channels.
        rank: of its input and its output.
        taken_axis, made_axis: where their channels are, counted from behind.
    """

    node: ir.Node
    weight: Array
    bias: Array | None
    group: int
    makes_first: bool
    rank: int
    taken_axis: int
    made_axis: int

    def channels(self, made: bool) -> int:
        """How many channels it makes or takes."""
        return self.weight.shape[0] if made is self.makes_first else self.group * self.weight.shape[1]

    def per_channel(self, values: Array, made: bool) -> Array | None:
        """`values`, as they broadcast with the output or input, as one for each channel; None where they are others.

        Others vary along another axis, or make the tensor larger.
        """
        axis = self.made_axis if made else self.taken_axis
        shape = (1,) * (self.rank - values.ndim) + values.shape
        channels = self.channels(made)
        if len(shape) != self.rank or shape[axis] not in (1, channels) or values.size != shape[axis]:
            return None
        return np.broadcast_to(values.reshape(-1), channels)

    def scaled(self, factors: Array, made: bool) -> Layer | None:
        """With the channels of its output or input times `factors`; None where fp16 does not hold that well."""
        rows = self._rows(made)
        wanted = rows * factors.astype(np.float64)[:, np.newaxis]
        bias = None if self.bias is None else self.bias * (factors if made else 1.0)
        if not keeps_half(rows, wanted) or not (bias is None or _is_half(bias)):
            return None
        return dataclasses.replace(self, weight=self._unrows(wanted, made), bias=_float(bias))

    def shifted(self, shifts: Array) -> Layer | None:
        """With `shifts` added to the channels of its output; None where it takes no bias, or fp16 does not hold it."""
        if self.node.op_type == "MatMul" or self.node.attributes.get_float("beta", 1.0) != 1.0:
            return None
        bias = shifts.astype(np.float64) + (0.0 if self.bias is None else self.bias)
        return dataclasses.replace(self, bias=_float(bias)) if _is_half(bias) else None

    def write(self, made_by: str) -> None:
        """Give the node these weights and this bias, its own where others read the old ones too."""
        if self.bias is not None and len(self.node.inputs) < 3:
            self.node.resize_inputs(3)
        for place, values in ((1, self.weight), (2, self.bias)):
            if values is not None:
                replace_weight(self.node, place, values, made_by)

    def _rows(self, made: bool) -> Array:
        """The weights as [channels, others], channels those of the output or the input."""
        if made is self.makes_first:
            return self.weight.reshape(len(self.weight), -1)
        return self._grouped().swapaxes(1, 2).reshape(self.channels(made), -1)

    def _unrows(self, rows: Array, made: bool) -> Array:
        weight = rows
        if made is not self.makes_first:
            group, first, second, rest = self._grouped().shape
            weight = rows.reshape(group, second, first, rest).swapaxes(1, 2)
        return np.ascontiguousarray(weight.reshape(self.weight.shape), np.float32)

    def _grouped(self) -> Array:
        first, second = self.weight.shape[:2]
        return self.weight.reshape(self.group, first // self.group, second, -1)


def layer_of(node: ir.Node) -> Layer | None:
    """`node` as such a layer, where it is one; the shape of a MatMul's output must be known."""
    if not is_one_of(node, LAYERS) or input_at(node, 0) is None:
        return None
    weight, bias = (weight_of(input_at(node, place)) for place in (1, 2))
    if weight is None or weight.dtype != np.float32 or weight.ndim < 2 or not weight.size:
        return None
    if bias is None and input_at(node, 2) is not None:
        return None
    if node.op_type in ("Conv", "ConvTranspose"):
        group = node.attributes.get_int("group", 1)
        if weight.ndim < 3 or group < 1 or weight.shape[0] % group:
            return None
        axis = 1 - weight.ndim
        return Layer(node, weight, bias, group, node.op_type == "Conv", weight.ndim, axis, axis)
    shape = node.outputs[0].shape
    if weight.ndim != 2 or (shape is None and node.op_type == "MatMul"):
        return None
    if node.op_type == "MatMul":
        assert shape is not None
        return Layer(node, weight, None, 1, False, len(shape), -1, -1)
    turned = (node.attributes.get_int(name, 0) != 0 for name in ("transA", "transB"))
    return _gemm(node, weight, bias, *turned)


def _gemm(node: ir.Node, weight: Array, bias: Array | None, turns_data: bool, turns_weight: bool) -> Layer | None:
    made = Layer(node, weight, None, 1, turns_weight, 2, -2 if turns_data else -1, -1)
    if bias is None:
        return made
    row = made.per_channel(bias, made=True) if bias.ndim <= made.rank else None
    return None if row is None else dataclasses.replace(made, bias=np.ascontiguousarray(row))


def replace_weight(node: ir.Node, place: int, values: Array, made_by: str) -> None:
    """Let `node` read `values` at `place`, a constant of its own where others read the old one too."""
    old = input_at(node, place)
    known = weight_of(old)
    if known is not None and np.array_equal(known, values):
        return
    stem = f"{node.outputs[0].name}/bias" if old is None else str(old.name).removesuffix(f"/{made_by}")
    node.replace_input_with(place, add_constant(graph_of(node), f"{stem}/{made_by}", values))
    if old is not None and old.is_initializer():
        drop_unused_weights(graph_of(node), [old])


def _float(values: Array | None) -> Array | None:
    return None if values is None else values.astype(np.float32)


def _is_half(values: Array) -> bool:
    return bool(np.all(np.abs(values) <= LARGEST_HALF))  # False for NaN too


def keeps_half(before: Array, after: Array) -> bool:
    """Whether weights [channels, others] are in fp16's range `after`, and each channel rounds to fp16 as well.

    As well as it did before, or as numbers of the normal range do.
    """
    return _is_half(after) and bool(np.all(_lost(after) <= np.maximum(HALF_ROUNDING, _lost(before))))


def _lost(rows: Array) -> Array:
    """What rounding to fp16 takes from each row, relative to it."""
    lost = np.zeros(len(rows))
    for start in range(0, len(rows), step := max(1, _AT_ONCE // rows.shape[1])):
        some = rows[start : start + step].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            error, size = (np.linalg.norm(part, axis=1) for part in (some.astype(np.float16) - some, some))
            np.divide(error, size, out=lost[start : start + step], where=size > 0)
    return lost


_AT_ONCE = 2**20
"""Weights looked at in one go: the heads of language models have some hundred millions, too many to hold as doubles."""
