"""How low and how high the values of a graph can be, as far as its operators and constants bound them.

Interval arithmetic, sound for every feed, and for each channel by itself. It knows at least what the toolkit's own step
`sparse_weight` knows (Add, pools, BatchNormalization, Clip, Concat, Conv, Dropout, Gemm, LeakyRelu,
MatMul, Relu, Resize: what its module names, and graphs that it was run on, 2.3.2), what the compiler folds into those,
and how tensors are laid out. Where the compiler makes one layer of two convolutions, it may know more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir

from surgery.graph import input_at
from surgery.inferred import static_shape
from surgery.intervals import OPEN, Range, product, weighted
from surgery.linear_layers import Array
from surgery.matching import ONNX_DOMAINS, Matched, is_one_of
from surgery.weights import tensor_of, weight_of

LEAKY_SLOPE = 0.01
"""What a LeakyRelu has that states none (ONNX operator specification)."""

LEAKY_RELU = Matched("LeakyRelu", used=frozenset({"alpha"}))
ABS = Matched("Abs")

_EPSILON = 1e-5
"""Of a BatchNormalization that states none (the same)."""

_LARGEST_LAID = 2**20
"""Largest tensor of bounds that is laid out anew by a Reshape; of a larger one, all bounds become one."""

_ANY = "the bounds hold for every channel whatever it is"
_WINDOW = dict.fromkeys(("dilations", "kernel_shape", "strides"), _ANY)
_PADDED = frozenset({"auto_pad", "pads"})

BOUNDED: tuple[Matched, ...] = (
    *(Matched(op) for op in ("Add", "Div", "GlobalAveragePool", "GlobalMaxPool", "Identity", "MatMul", "Mul")),
    *(Matched(op) for op in ("Neg", "Relu", "Sub")),
    ABS,
    LEAKY_RELU,
    Matched("AveragePool", used=_PADDED | {"ceil_mode"}, irrelevant={**_WINDOW, "count_include_pad": _ANY}),
    Matched(
        "BatchNormalization",
        used=frozenset({"epsilon"}),
        required={"training_mode": "0"},
        irrelevant={"momentum": "of the running statistics, which are not asked for"},
    ),
    Matched("Clip"),
    Matched("Concat", used=frozenset({"axis"})),
    Matched("Conv", used=_PADDED | {"group"}, irrelevant=_WINDOW),
    Matched("Dropout", irrelevant=dict.fromkeys(("ratio", "seed"), "of training")),
    Matched("Flatten", irrelevant={"axis": _ANY}),
    Matched("Gemm", used=frozenset({"alpha", "beta", "transA", "transB"})),
    Matched(
        "MaxPool",
        irrelevant={**_WINDOW, **dict.fromkeys(("auto_pad", "ceil_mode", "pads", "storage_order"), _ANY)},
    ),
    Matched("Reshape", irrelevant={"allowzero": _ANY}),
    Matched(
        "Resize",
        used=frozenset({"coordinate_transformation_mode", "mode"}),
        irrelevant={
            **dict.fromkeys(("antialias", "axes", "keep_aspect_ratio_policy", "nearest_mode"), _ANY),
            **dict.fromkeys(("cubic_coeff_a", "exclude_outside", "extrapolation_value"), "of the forms left out"),
        },
    ),
    Matched("Squeeze", irrelevant={"axes": _ANY}),
    Matched("Transpose", used=frozenset({"perm"})),
    Matched("Unsqueeze", irrelevant={"axes": _ANY}),
)
"""What is looked through; the values of all others are unbounded."""


_ZERO = Range(np.array(0.0), np.array(0.0))


class Ranges:
    """The ranges of the values of a graph of known types and shapes, each looked for once; the graph stays as it is.

    Only what is asked for is looked at, and of that only what can bound it: weights are many.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, Range] = {}

    def of(self, value: ir.Value) -> Range:
        """The range of `value`."""
        waiting = [value]
        while waiting:
            at = waiting[-1]
            wanted = None if at in self._known else self._wanted_for(at)
            if wanted is not None:
                waiting.append(wanted)
                continue
            waiting.pop()
            if at not in self._known:
                self._known[at] = self._range(at)
        return self._known[value]

    def _wanted_for(self, value: ir.Value) -> ir.Value | None:
        """What has to be known next for the range of `value`; None where that can be said."""
        for read in _looked_at(value):
            if read not in self._known:
                return read
            if self._known[read].is_open and _is_sum(value):
                return None
        return None

    def _range(self, value: ir.Value) -> Range:
        values = weight_of(value) if _is_float(value) else None
        if values is not None:
            exact = values.astype(np.float64)
            return Range(exact, exact) if np.all(np.isfinite(exact)) and exact.size else OPEN
        node = value.producer()
        if node is None or not _is_bounded(value):
            return OPEN
        given = [OPEN if read is None else self._known.get(read, OPEN) for read in node.inputs]
        found = _RULES[node.op_type](node, given)
        broken = np.any(np.isnan(found.low) | np.isposinf(found.low)) or np.any(
            np.isnan(found.high) | np.isneginf(found.high)
        )
        return OPEN if broken or not found.low.size or not found.high.size else found


def slope_of(node: ir.Node) -> float | None:
    """What `node`, a LeakyRelu or an Abs, multiplies numbers below 0 by; None for any other."""
    if is_one_of(node, (LEAKY_RELU,)):
        return node.attributes.get_float("alpha", LEAKY_SLOPE)
    return -1.0 if is_one_of(node, (ABS,)) else None


def is_absolute(node: ir.Node) -> bool:
    """Whether `node` makes numbers below 0 positive: an Abs, or a LeakyRelu of negative slope."""
    slope = slope_of(node)
    return slope is not None and slope < 0.0


def _looked_at(value: ir.Value) -> list[ir.Value]:
    """What the range of `value` needs, constants last.

    Not the weights of its layer, which are large, and read as they are; nor what is multiplied or divided by what is
    computed, of which nothing is said.
    """
    node = value.producer()
    if node is None or not _is_bounded(value) or tensor_of(value) is not None:
        return []
    constant = {read for read in node.inputs if tensor_of(read) is not None}
    if (node.op_type == "Mul" and not constant) or (node.op_type == "Div" and input_at(node, 1) not in constant):
        return []
    weights = constant.intersection(node.inputs[:2]) if node.op_type in ("Conv", "Gemm", "MatMul") else ()
    needed = [read for read in node.inputs if read is not None and read not in weights]
    return sorted(needed, key=lambda read: read in constant)


def _is_sum(value: ir.Value) -> bool:
    """Whether nothing is known of `value` where nothing is known of one that its node reads."""
    node = value.producer()
    return node is not None and node.op_type in ("Add", "Sub")


def _is_bounded(value: ir.Value) -> bool:
    """Whether a rule says something of `value`: the first output of its node, float32, and of known rank."""
    node = value.producer()
    if node is None or node.op_type not in _RULES or node.domain not in ONNX_DOMAINS or node.outputs[0] is not value:
        return False
    known = all(read is None or not _is_float(read) or read.shape is not None for read in node.inputs)
    return known and value.shape is not None and _is_float(value)


def _is_float(value: ir.Value) -> bool:
    return value.dtype is ir.DataType.FLOAT


def _rank(value: ir.Value | None) -> int:
    return 0 if value is None or value.shape is None else len(value.shape)


def _leaky(slope: float, given: Range) -> Range:
    ends = [np.where(end >= 0, end, product(end, np.asarray(slope))) for end in (given.low, given.high)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    crosses = (given.low < 0) & (given.high > 0)
    return Range(np.where(crosses, np.minimum(low, 0.0), low), high)


def _leaky_relu(node: ir.Node, given: Sequence[Range]) -> Range:
    return _leaky(node.attributes.get_float("alpha", LEAKY_SLOPE), given[0])


def _relu(_node: ir.Node, given: Sequence[Range]) -> Range:
    return Range(np.maximum(given[0].low, 0.0), np.maximum(given[0].high, 0.0))


def _clip(node: ir.Node, given: Sequence[Range]) -> Range:
    """A bound that is left out, or not constant, is none."""
    low = given[1].low if len(given) > 1 else np.array(node.attributes.get_float("min", -np.inf))
    high = given[2].high if len(given) > 2 else np.array(node.attributes.get_float("max", np.inf))
    most = Range(np.maximum(given[0].low, low), np.maximum(given[0].high, low))
    return Range(np.minimum(most.low, high), np.minimum(most.high, high)) if _are_constant(node) else OPEN


def _are_constant(clip: ir.Node) -> bool:
    return all(bound is None or weight_of(bound) is not None for bound in clip.inputs[1:])


def _add(node: ir.Node, given: Sequence[Range]) -> Range:
    return given[0].plus(given[1]) if len(given) == 2 and not node.attributes else OPEN


def _sub(node: ir.Node, given: Sequence[Range]) -> Range:
    return given[0].plus(given[1].times(np.array(-1.0))) if len(given) == 2 and not node.attributes else OPEN


def _mul(node: ir.Node, given: Sequence[Range]) -> Range:
    for place in (0, 1):
        if len(given) == 2 and not node.attributes and weight_of(node.inputs[place]) is not None:
            return OPEN if given[place].is_open else given[1 - place].times(given[place].low)
    return OPEN


def _div(node: ir.Node, given: Sequence[Range]) -> Range:
    values = weight_of(input_at(node, 1))
    if values is None or node.attributes or not np.all(values):
        return OPEN
    return given[0].times(1.0 / values.astype(np.float64))


def _same(node: ir.Node, given: Sequence[Range]) -> Range:
    """A Dropout that is told whether to train may scale."""
    return given[0] if len([value for value in node.inputs if value is not None]) == 1 else OPEN


def _channels(node: ir.Node, given: Sequence[Range]) -> Range:
    """Of each channel by itself."""
    rank = _rank(node.inputs[0])
    return given[0].along(1, rank).placed(1, rank) if rank > 2 else OPEN


def _average(node: ir.Node, given: Sequence[Range]) -> Range:
    found = _channels(node, given)
    return found.around(_ZERO) if _has_pads(node) or node.attributes.get_int("ceil_mode", 0) != 0 else found


def _has_pads(node: ir.Node) -> bool:
    automatic = node.attributes.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    return automatic or any(node.attributes.get_ints("pads", ()))


def _batch_normalization(node: ir.Node, given: Sequence[Range]) -> Range:
    constants = [weight_of(value) for value in node.inputs[1:]]
    known = [values.astype(np.float64) for values in constants if values is not None and values.ndim == 1]
    rank = _rank(node.inputs[0])
    trains = node.attributes.get_int("training_mode", 0) != 0 or any(value.name for value in node.outputs[1:])
    if len(known) != 4 or rank < 2 or trains or "spatial" in node.attributes:
        return OPEN
    scale, shift, mean, variance = (values.reshape(-1, *[1] * (rank - 2)) for values in known)
    spread = variance + node.attributes.get_float("epsilon", _EPSILON)
    if not np.all(spread > 0):
        return OPEN
    factors = scale / np.sqrt(spread)
    moved = shift - mean * factors
    return given[0].times(factors).plus(Range(moved, moved))


def _conv(node: ir.Node, given: Sequence[Range]) -> Range:
    weight, bias = weight_of(input_at(node, 1)), weight_of(input_at(node, 2))
    group = node.attributes.get_int("group", 1)
    if weight is None or weight.ndim < 3 or not weight.size or (bias is None and input_at(node, 2) is not None):
        return OPEN
    data = given[0].along(1, weight.ndim)
    if _has_pads(node):
        data = data.around(_ZERO)
    places = group * weight.shape[1]
    if group < 1 or len(weight) % group or not {data.low.size, data.high.size} <= {1, places}:
        return OPEN
    parts = weight.reshape(group, len(weight) // group, weight.shape[1], -1)
    low, high = (np.broadcast_to(end, places).reshape(group, 1, -1) for end in (data.low, data.high))
    moved = np.zeros(1) if bias is None else bias.astype(np.float64).reshape(-1)
    return weighted(parts, Range(low, high)).plus(Range(moved, moved)).placed(1, weight.ndim)


def _matmul(node: ir.Node, given: Sequence[Range]) -> Range:
    """By a constant matrix on either side."""
    for place, axis in ((1, -1), (0, -2)):
        weight, rank = weight_of(node.inputs[place]), _rank(node.inputs[1 - place])
        if weight is None or weight.ndim < 2 or weight.size != weight.shape[-1] * weight.shape[-2] or rank < 2:
            continue
        matrix = weight.reshape(weight.shape[-2:])
        made = _rows(given[1 - place], rank, axis, matrix.T if place else matrix)
        return made if place else made.placed(0, 2)
    return OPEN


def _rows(given: Range, rank: int, axis: int, rows: Array) -> Range:
    """Of products with `rows` [made, taken]."""
    return OPEN if not rows.size else weighted(rows[np.newaxis, ..., np.newaxis], given.along(axis, rank))


def _gemm(node: ir.Node, given: Sequence[Range]) -> Range:
    weight = weight_of(input_at(node, 1))
    if weight is None or weight.ndim != 2 or node.attributes.get_int("transA", 0) != 0:
        return OPEN
    rows = weight if node.attributes.get_int("transB", 0) else weight.T
    made = _rows(given[0], 2, -1, rows).times(np.array(node.attributes.get_float("alpha", 1.0)))
    if input_at(node, 2) is None:
        return made
    return made.plus(given[2].times(np.array(node.attributes.get_float("beta", 1.0))))


def _concat(node: ir.Node, given: Sequence[Range]) -> Range:
    rank = _rank(node.outputs[0])
    axis = node.attributes.get_int("axis", 1) % max(rank, 1)
    sizes = [static_shape(value) for value in node.inputs]
    if axis != 1 or rank < 2 or None in sizes:
        return reduce(Range.around, [_channel_bounds(one, rank) for one in given])
    parts = [one.along(1, rank) for one in given]
    widths = [shape[1] for shape in sizes if shape is not None]
    low, high = (
        np.concatenate([np.broadcast_to(end, width) for end, width in zip(ends, widths, strict=True)])
        for ends in ([part.low for part in parts], [part.high for part in parts])
    )
    return Range(low, high).placed(1, rank)


def _channel_bounds(given: Range, rank: int) -> Range:
    return given.along(1, rank).placed(1, rank) if rank >= 2 else Range(given.low.min(), given.high.max())


def _resize(node: ir.Node, given: Sequence[Range]) -> Range:
    """A mean of neighbours, of one or of several; a cubic one, or one that reads beyond the edges, is none."""
    beyond = node.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    plain = node.attributes.get_string("mode", "nearest") in ("nearest", "linear")
    sizes = [static_shape(value) for value in (node.inputs[0], node.outputs[0])]
    if not plain or beyond or any(shape is None or len(shape) < 3 for shape in sizes):
        return OPEN
    before, after = (shape[1] for shape in sizes if shape is not None)
    return _channels(node, given) if before == after else OPEN


def _transpose(node: ir.Node, given: Sequence[Range]) -> Range:
    rank = _rank(node.inputs[0])
    perm = node.attributes.get_ints("perm", tuple(reversed(range(rank))))
    low, high = (
        end.reshape((1,) * (rank - end.ndim) + end.shape).transpose(perm) for end in (given[0].low, given[0].high)
    )
    return Range(low, high)


def _laid(node: ir.Node, given: Sequence[Range]) -> Range:
    """In another shape."""
    before, after = static_shape(node.inputs[0]), static_shape(node.outputs[0])
    low, high = given[0].low, given[0].high
    if low.size == high.size == 1 or before is None or after is None or not 0 < np.prod(before) <= _LARGEST_LAID:
        return Range(low.min(), high.max())
    return Range(*(np.broadcast_to(end, before).reshape(after) for end in (low, high)))


_Rule = Callable[[ir.Node, Sequence[Range]], Range]

_RULES: Mapping[str, _Rule] = {
    "Abs": lambda _node, given: _leaky(-1.0, given[0]),
    "Add": _add,
    "AveragePool": _average,
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "Div": _div,
    "Dropout": _same,
    "Flatten": _laid,
    "Gemm": _gemm,
    "GlobalAveragePool": _channels,
    "GlobalMaxPool": _channels,
    "Identity": _same,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "MaxPool": _channels,
    "Mul": _mul,
    "Neg": lambda _node, given: given[0].times(np.array(-1.0)),
    "Relu": _relu,
    "Reshape": _laid,
    "Resize": _resize,
    "Squeeze": _laid,
    "Sub": _sub,
    "Transpose": _transpose,
    "Unsqueeze": _laid,
}
