"""Shapes and paddings that depend on the length of the phonemes, as torch's exporters compute them."""

from __future__ import annotations

from tests.vits_writer.graph_writer import INT64_END, GraphWriter

IDS = "input"
"""Piper's name for the phoneme ids [batch, T]."""

Size = int | str
"""A number, or the name of an int64 of rank 0."""


def vector(w: GraphWriter, scope: str, sizes: list[Size]) -> str:
    """An int64 [n] of `sizes`."""
    if all(isinstance(size, int) for size in sizes):
        return w.integers(*(size for size in sizes if isinstance(size, int)))
    return w.op(scope, "Concat", *(as_vector(w, scope, size) for size in sizes), axis=0)


def as_vector(w: GraphWriter, scope: str, size: Size) -> str:
    """An int64 [1] of `size`."""
    if isinstance(size, int):
        return w.integers(size)
    if w.dynamo:
        return w.op(scope, "Reshape", size, w.integers(-1), allowzero=0)
    return w.op(scope, "Unsqueeze", size, w.integers(0))


def reshape(w: GraphWriter, scope: str, x: str, sizes: list[Size]) -> str:
    """`x` with the shape `sizes`; the newer exporter leaves a single unknown size to the operator."""
    if not w.dynamo:
        return w.op(scope, "Reshape", x, vector(w, scope, sizes), allowzero=0)
    if sum(isinstance(size, str) for size in sizes) == 1:
        sizes = [-1 if isinstance(size, str) else size for size in sizes]
    return w.op(scope, "Reshape", x, vector(w, scope, sizes), allowzero=1)


def phonemes_of(w: GraphWriter, scope: str, x: str) -> str:
    """The number of phonemes, of x [batch, C, T]; the newer exporter knows every T for the one of the input."""
    return size_of(w, scope, IDS, 1) if w.dynamo else size_of(w, scope, x, 2)


def size_of(w: GraphWriter, scope: str, x: str, axis: int) -> str:
    """The size of `x` along `axis`, an int64 of rank 0."""
    if w.dynamo:
        return w.op(scope, "Squeeze", w.op(scope, "Shape", x, start=axis, end=axis + 1))
    return sizes_of(w, scope, x, axis)[0]


def sizes_of(w: GraphWriter, scope: str, x: str, *axes: int) -> list[str]:
    """`x.size()` as the tracing exporter writes it: one Shape, and a Gather for each axis that is used."""
    shape = w.op(scope, "Shape", x)
    return [w.op(scope, "Gather", shape, w.scalar(axis), axis=0) for axis in axes]


def pad(w: GraphWriter, scope: str, x: str, rank: int, amounts: list[Size]) -> str:
    """`torch.nn.functional.pad`: `amounts` are left and right of the last axis, then of the one before, and so on."""
    return padded(w, scope, x, pads(w, scope, rank, amounts))


def pads(w: GraphWriter, scope: str, rank: int, amounts: list[Size]) -> str:
    """The second input of a Pad: all lefts, then all rights, from the first axis.

    Where an amount is only known at run time, the tracing exporter turns torch's list round in the graph.
    """
    amounts = amounts + [0] * (2 * rank - len(amounts))
    if w.dynamo or all(isinstance(amount, int) for amount in amounts):
        return vector(w, scope, amounts[-2::-2] + amounts[::-2])
    table = w.op(scope, "Reshape", vector(w, scope, amounts), w.integers(-1, 2), allowzero=0)
    rows_reversed = (w.integers(-1), w.integers(-INT64_END), w.integers(0), w.integers(-1))
    table = w.op(scope, "Transpose", w.op(scope, "Slice", table, *rows_reversed), perm=[1, 0])
    return w.op(scope, "Reshape", table, w.integers(-1), allowzero=0)


def padded(w: GraphWriter, scope: str, x: str, amounts: str) -> str:
    """`x` with zeros around it; the tracing exporter names the value that is not given."""
    return w.op(scope, "Pad", x, amounts, *([] if w.dynamo else [""]), mode="constant")


def part(w: GraphWriter, scope: str, x: str, start: Size, end: Size, axis: int) -> str:
    """A Slice along one axis."""
    bounds = [as_vector(w, scope, bound) for bound in (start, end)]
    return w.op(scope, "Slice", x, *bounds, w.integers(axis), w.integers(1))
