"""The coupling of VITS's stochastic duration predictor: a rational-quadratic spline, inverted, as the exporter has it.

Of Durkan et al., Neural Spline Flows: ten bins on -5..5, identity outside. Masked assignment becomes NonZero, GatherND
and ScatterND; assignment to a first or last column becomes index grids and ScatterND.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log

import numpy as np
from onnx import TensorProto, numpy_helper

from tests.vits_writer.blocks import dds_conv
from tests.vits_writer.graph_writer import INT64_END, GraphWriter
from tests.vits_writer.shapes import Size, as_vector, pad, phonemes_of, reshape, sizes_of

BINS = 10
BOUND = 5.0
LEAST = 1e-3
"""Of a bin's width, height and derivative."""

BESIDE = 1e-6
"""Added to the last edge, so that a value on it falls into the last bin."""

EDGE_DERIVATIVE = log(expm1(1 - LEAST))
"""What softplus makes 1 - LEAST of: the derivative at either end is one."""


def conv_flow(w: GraphWriter, scope: str, z: str, mask: str, given: str, channels: int) -> str:
    """z [batch, 2, T]: its second channel through the spline that its first and `given` [batch, channels, T] tell."""
    first, second = w.halves(scope, z, 1)
    h = w.conv(f"{scope}/pre", first, 1, channels)
    h = dds_conv(w, f"{scope}/convs", h, mask, channels, given)
    h = w.op(scope, "Mul", w.conv(f"{scope}/proj", h, channels, 3 * BINS - 1), mask)
    sizes: list[Size]
    if w.dynamo:
        sizes = [1, 1, 3 * BINS - 1, phonemes_of(w, scope, first)]
    else:
        batch, half, count = sizes_of(w, scope, first, 0, 1, 2)
        sizes = [batch, half, -1, count]
    h = w.op(scope, "Transpose", reshape(w, scope, h, sizes), perm=[0, 1, 3, 2])
    root = w.real(channels**0.5)
    widths = w.op(scope, "Div", _columns(w, scope, h, 0, BINS, 3), root)
    heights = w.op(scope, "Div", _columns(w, scope, h, BINS, 2 * BINS, 3), root)
    derivatives = _columns(w, scope, h, 2 * BINS, INT64_END, 3)
    second = _unconstrained(w, scope, second, widths, heights, derivatives)
    return w.op(scope, "Mul", w.op(scope, "Concat", first, second, axis=1), mask)


def _unconstrained(w: GraphWriter, scope: str, x: str, widths: str, heights: str, derivatives: str) -> str:
    """x [batch, 1, T] through the inverted spline where it lies in -5..5, and as it is elsewhere."""
    above = w.op(scope, "GreaterOrEqual", x, w.real(-BOUND))
    inside = w.op(scope, "And", above, w.op(scope, "LessOrEqual", x, w.real(BOUND)))
    outside = w.op(scope, "Not", inside)
    derivatives = pad(w, scope, derivatives, 4, [1, 1])
    for last in (False, True):
        derivatives = _with_edge(w, scope, derivatives, 4, EDGE_DERIVATIVE, last=last)
    at_outside, at_inside = _indices(w, scope, outside), _indices(w, scope, inside)
    kept = w.op(scope, "GatherND", x, at_outside)
    out = w.op(scope, "ConstantOfShape", w.op(scope, "Shape", x))
    inner = [w.op(scope, "GatherND", value, at_inside) for value in (x, widths, heights, derivatives)]
    inverted = w.op(scope, "Reshape", _inverse(w, scope, *inner), w.integers(-1), allowzero=0)
    for where, values in ((outside, kept), (inside, inverted)):
        everywhere = w.op(scope, "Expand", where, w.op(scope, "Shape", out))
        at = _indices(w, scope, everywhere)
        count = as_vector(w, scope, sizes_of(w, scope, at, 0)[0])
        values = w.op(scope, "Slice", values, w.integers(0), count, w.integers(0))
        out = w.op(scope, "ScatterND", out, at, values)
    return out


@dataclass(frozen=True)
class _Edges:
    """The edges [K, 11] of ten bins, and their sizes [K, 10]."""

    edges: str
    sizes: str


def _inverse(w: GraphWriter, scope: str, y: str, widths: str, heights: str, derivatives: str) -> str:
    """The x of y [K]: the root of the quadratic in the bin that y lies in."""
    bins = w.op(scope, "Cast", sizes_of(w, scope, widths, 1)[0], to=TensorProto.FLOAT)
    room = w.op(scope, "Sub", w.real(1.0), w.op(scope, "Mul", bins, w.real(LEAST)))
    along_x = _edges(w, scope, widths, room)
    derivatives = w.op(scope, "Add", w.op(scope, "Softplus", derivatives), w.real(LEAST))
    along_y = _edges(w, scope, heights, room)
    last = _edge(w, scope, along_y.edges, last=True)
    beside = w.op(scope, "Add", w.op(scope, "Gather", along_y.edges, last, axis=1), w.real(BESIDE))
    edges_y = along_y.edges
    for _ in range(2):  # `edges[..., -1] += eps` of a view is an assignment of its own, and one by the caller
        edges_y = _with_edge(w, scope, edges_y, 2, beside, last=True)
    reached = w.op(scope, "GreaterOrEqual", w.op(scope, "Unsqueeze", y, w.integers(1)), edges_y)
    number = w.op(scope, "ReduceSum", w.op(scope, "Cast", reached, to=TensorProto.INT64), w.integers(-1), keepdims=0)
    number = w.op(scope, "Unsqueeze", w.op(scope, "Sub", number, w.scalar(1)), w.integers(1))

    def of_bin(values: str) -> str:
        return w.op(scope, "Gather", w.op(scope, "GatherElements", values, number, axis=-1), w.scalar(0), axis=1)

    left, width, bottom = of_bin(along_x.edges), of_bin(along_x.sizes), of_bin(edges_y)
    slope = of_bin(w.op(scope, "Div", along_y.sizes, along_x.sizes))
    at_left, at_right = of_bin(derivatives), of_bin(_columns(w, scope, derivatives, 1, INT64_END, 1))
    height = of_bin(along_y.sizes)
    rise = w.op(scope, "Sub", y, bottom)
    bend = w.op(scope, "Sub", w.op(scope, "Add", at_left, at_right), w.op(scope, "Mul", slope, w.real(2.0)))
    bent = w.op(scope, "Mul", rise, bend)
    a = w.op(scope, "Add", bent, w.op(scope, "Mul", height, w.op(scope, "Sub", slope, at_left)))
    b = w.op(scope, "Sub", w.op(scope, "Mul", height, at_left), bent)
    c = w.op(scope, "Mul", w.op(scope, "Neg", slope), rise)
    four_ac = w.op(scope, "Mul", w.op(scope, "Mul", a, w.real(4.0)), c)
    root = w.op(scope, "Sqrt", w.op(scope, "Sub", w.op(scope, "Pow", b, w.real(2.0)), four_ac))
    below = w.op(scope, "Sub", w.op(scope, "Neg", b), root)
    fraction = w.op(scope, "Div", w.op(scope, "Mul", c, w.real(2.0)), below)
    return w.op(scope, "Add", w.op(scope, "Mul", fraction, width), left)


def _edges(w: GraphWriter, scope: str, x: str, room: str) -> _Edges:
    """Ten bins that fill -5..5, of softmax(x [K, 10])'s proportions but none too small."""
    sizes = w.op(scope, "Mul", room, w.op(scope, "Softmax", x, axis=-1))
    ends = w.op(scope, "CumSum", w.op(scope, "Add", sizes, w.real(LEAST)), w.scalar(-1))
    edges = w.op(scope, "Pad", ends, w.integers(0, 1, 0, 0), w.real(0.0), mode="constant")
    edges = w.op(scope, "Add", w.op(scope, "Mul", edges, w.real(2 * BOUND)), w.real(-BOUND))
    edges = _with_edge(w, scope, edges, 2, -BOUND, last=False)
    edges = _with_edge(w, scope, edges, 2, BOUND, last=True)
    right, left = _columns(w, scope, edges, 1, INT64_END, 1), _columns(w, scope, edges, 0, -1, 1)
    return _Edges(edges, w.op(scope, "Sub", right, left))


def _with_edge(w: GraphWriter, scope: str, x: str, rank: int, value: float | str, *, last: bool) -> str:
    """`x[..., 0] = value`, or `x[..., -1] = value`; value is a number, or the name of a tensor of those positions."""
    at = _edge(w, scope, x, last=last)
    shape = w.op(scope, "Shape", w.op(scope, "Gather", x, at, axis=rank - 1))
    if isinstance(value, float):
        filling = numpy_helper.from_array(np.array([value], np.float32))
        value = w.op(scope, "ConstantOfShape", shape, value=filling)
    value = w.op(scope, "Expand", value, shape)
    grids = []
    for axis, size in enumerate(sizes_of(w, scope, x, *range(rank - 1))):
        row = w.op(scope, "Range", w.scalar(0), size, w.scalar(1))
        grids.append(w.op(scope, "Reshape", row, w.integers(-1, *[1] * (rank - 1 - axis)), allowzero=0))
    column = w.op(scope, "Unsqueeze", at, w.integers(0)) if last else w.integers(0)
    total = grids[0]
    for grid in (*grids[1:], column) if last else grids[1:]:
        total = w.op(scope, "Add", total, grid)
    common = w.op(scope, "Shape", total)
    unknown = w.op(scope, "Equal", common, w.integers(*[-1] * rank))
    known = w.op(scope, "Where", unknown, w.integers(*[1] * rank), common)
    parts = [w.op(scope, "Expand", grid, known) for grid in (*grids, column)]
    parts = [w.op(scope, "Unsqueeze", part, w.integers(-1)) for part in parts]
    indices = w.op(scope, "Concat", *parts, axis=-1)
    rest = w.op(scope, "Slice", w.op(scope, "Shape", x), w.integers(rank), w.integers(INT64_END), w.integers(0))
    updates = w.op(scope, "Reshape", value, w.op(scope, "Concat", common, rest, axis=0), allowzero=0)
    return w.op(scope, "ScatterND", x, indices, updates)


def _edge(w: GraphWriter, scope: str, x: str, *, last: bool) -> str:
    """The number of the first or the last column, an int64 of rank 0."""
    if not last:
        return w.scalar(0)
    size = w.op(scope, "Slice", w.op(scope, "Shape", x), w.integers(-1), w.integers(INT64_END), w.integers(0))
    return w.op(scope, "Sub", w.op(scope, "Squeeze", size, w.integers(0)), w.scalar(1))


def _indices(w: GraphWriter, scope: str, chosen: str) -> str:
    """Where `chosen` is true: int64 [count, rank]."""
    return w.op(scope, "Transpose", w.op(scope, "NonZero", chosen), perm=[1, 0])


def _columns(w: GraphWriter, scope: str, x: str, start: int, end: int, axis: int) -> str:
    return w.op(scope, "Slice", x, w.integers(start), w.integers(end), w.integers(axis), w.integers(1))
