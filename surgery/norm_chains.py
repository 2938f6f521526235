"""Finds the chain of operators that a normalisation is written as, in the spellings that exporters have for it.

    m = mean(x), d = x - m, v = mean(d^2), y = d / sqrt(v + epsilon)

The mean: ReduceMean, a ReduceSum over its count, or GlobalAveragePool. The square: Pow or Mul. The root: Sqrt or Pow.
The division: Div, or Mul with Reciprocal, 1 / root or Pow -0.5. x - m may be written once or twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import isclose, prod

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.graph import graph_of, input_of, only_reader
from surgery.matching import Matched, is_one_of
from surgery.reductions import keeps_axes, reduced_axes
from surgery.scopes import drop_unused_weights
from surgery.splice import Draft, splice
from surgery.weights import weight_of

ADD, SUB, MUL, DIV = (Matched(op) for op in ("Add", "Sub", "Mul", "Div"))
POW, SQRT, RECIPROCAL = (Matched(op) for op in ("Pow", "Sqrt", "Reciprocal"))
_REDUCED = frozenset({"axes", "keepdims", "noop_with_empty_axes"})
REDUCE_MEAN, REDUCE_SUM = (Matched(op, used=_REDUCED) for op in ("ReduceMean", "ReduceSum"))
GLOBAL_POOL = Matched("GlobalAveragePool")

CHAINED = (ADD, SUB, MUL, DIV, POW, SQRT, RECIPROCAL, REDUCE_MEAN, REDUCE_SUM, GLOBAL_POOL)
"""What a chain is made of."""

ENDS = (DIV, MUL)
"""What a chain ends with."""

_SAME_FP32 = 2.0**-23
"""A constant 1 / N of float32 is N's inverse to within this."""


@dataclass(frozen=True)
class Mean:
    """The mean of `given` over `axes`, which stay as axes of one, made by `nodes`."""

    given: ir.Value
    axes: tuple[int, ...]
    nodes: frozenset[ir.Node]


@dataclass(frozen=True)
class Chain:
    """A chain that nothing else reads a part of.

    Attributes:
        first: the subtraction, whose first input is normalised.
        last: what makes the result.
        axes: what is normalised over, from the front, sorted.
        rank: of what is normalised.
        epsilon: what the variance gets.
        nodes: all of it.
    """

    first: ir.Node
    last: ir.Node
    axes: tuple[int, ...]
    rank: int
    epsilon: float
    nodes: frozenset[ir.Node]

    @property
    def given(self) -> ir.Value:
        """What is normalised, now: another chain may have been rewritten before it."""
        return input_of(self.first)


@dataclass(frozen=True)
class ScaleAndBias:
    """What scales, then shifts, a chain's result along one axis [its size]; none where nothing does. `nodes` do it."""

    scale: NDArray[np.generic] | None
    shift: NDArray[np.generic] | None
    nodes: tuple[ir.Node, ...]


def find_chain(last: ir.Node) -> Chain | None:
    """The chain of float32 that ends with `last`, a node of known types and shapes; None where none does."""
    for centred, deviation, inverse in _sides(last):
        variance = _variance_under(deviation, inverse)
        if variance is None:
            continue
        below, epsilon, nodes = variance
        mean = mean_of(below)
        squared = None if mean is None else _squared(mean.given)
        if mean is None or squared is None:
            continue
        one, other = _centred(centred), _centred(squared[0])
        if one is None or other is None or one.given is not other.given or not one.axes == other.axes == mean.axes:
            continue
        every = frozenset({last, squared[1], *nodes, *mean.nodes, *one.nodes, *other.nodes})
        first, shape = centred.producer(), one.given.shape
        if first is None or shape is None or one.given.dtype is not ir.DataType.FLOAT or not _is_whole(last, every):
            continue
        return Chain(first, last, mean.axes, len(shape), epsilon, every)
    return None


def mean_of(value: ir.Value | None) -> Mean | None:
    """What `value` is the mean of; None where it is none, or the axes do not stay or are not known."""
    node = None if value is None else value.producer()
    if node is None:
        return None
    if is_one_of(node, (REDUCE_MEAN,)):
        return _reduced(node)
    if is_one_of(node, (GLOBAL_POOL,)):
        given = input_of(node)
        rank = 0 if given.shape is None else len(given.shape)
        return Mean(given, tuple(range(2, rank)), frozenset({node})) if rank > 2 else None
    for side, number in _with_number(node, (DIV, MUL)):
        summed = side.producer()
        if summed is not None and is_one_of(summed, (REDUCE_SUM,)):
            found = _reduced(summed)
            count = None if found is None else _count(found)
            factor = number if is_one_of(node, (MUL,)) else 1 / number if number else 0.0
            if found is not None and count and isclose(factor * count, 1, rel_tol=_SAME_FP32):
                return Mean(found.given, found.axes, found.nodes | {node})
    return None


def affine_behind(last: ir.Node, axis: int, rank: int, size: int) -> ScaleAndBias:
    """What scales, and then shifts, the result of `last` by constants along `axis` of `rank` and `size`, all alone."""
    found: dict[str, NDArray[np.generic]] = {}
    nodes: list[ir.Node] = []
    at = last
    for operator in (MUL, ADD):
        node = only_reader(at.outputs[0])
        number = None if node is None else _along(node, operator, at.outputs[0], axis, rank, size)
        if node is not None and number is not None:
            found[operator.op] = number
            nodes.append(node)
            at = node
    return ScaleAndBias(found.get("Mul"), found.get("Add"), tuple(nodes))


def put_in_place(last: ir.Node, nodes: Collection[ir.Node], draft: Draft, made: ir.Value, made_by: str) -> None:
    """Let `made`, of `draft`, stand for the output of `last`; those of `nodes` that nothing reads any more go."""
    graph = graph_of(last)
    left = {node for node in nodes if node is not last}
    weights = {value for node in {*left, last} for value in node.inputs if value is not None and value.is_initializer()}
    splice(last, draft.nodes, [made], made_by)
    while unread := {node for node in left if not any(made.uses() or made.is_graph_output() for made in node.outputs)}:
        for node in unread:
            graph.remove(node, safe=True)
        left -= unread
    drop_unused_weights(graph, [value for value in weights if value.graph is graph])


def is_over_steps(chain: Chain) -> bool:
    """Whether `chain` normalises each channel over all axes behind the channels."""
    return chain.rank > 2 and chain.axes == tuple(range(2, chain.rank))


def number_of(value: ir.Value | None, rank: int) -> float | None:
    """The one number that the constant `value` holds, which makes no more than `rank` axes of what it meets."""
    weight = weight_of(value)
    return float(weight.reshape(())) if weight is not None and weight.size == 1 and weight.ndim <= rank else None


def _sides(last: ir.Node) -> Iterator[tuple[ir.Value, ir.Value, bool]]:
    """What may be centred, what may be its deviation, and whether that is the inverse."""
    if len(last.inputs) != 2 or None in last.inputs:
        return
    one, other = input_of(last, 0), input_of(last, 1)
    if is_one_of(last, (DIV,)):
        yield one, other, False
    elif is_one_of(last, (MUL,)):
        yield one, other, True
        yield other, one, True


def _variance_under(deviation: ir.Value, inverse: bool) -> tuple[ir.Value, float, frozenset[ir.Node]] | None:
    """The variance, what is added to it, and the nodes between it and the deviation."""
    node = deviation.producer()
    if node is None:
        return None
    power = _power(node)
    if inverse and power is None:
        root = _inverted(node)
        found = None if root is None else _variance_under(root, inverse=False)
        return None if found is None else (*found[:2], found[2] | {node})
    if power != (-0.5 if inverse else 0.5):
        return None
    under = input_of(node).producer()
    rank = _rank(input_of(node))
    if under is None or rank is None or not is_one_of(under, (ADD,)):
        return None
    for variance, epsilon in _with_number(under, (ADD,)):
        if 0 < epsilon < np.inf:
            return variance, epsilon, frozenset({node, under})
    return None


def _power(node: ir.Node) -> float | None:
    """The power that `node` raises its first input to."""
    if is_one_of(node, (SQRT,)):
        return 0.5
    return next((number for _, number in _with_number(node, (POW,))), None)


def _inverted(node: ir.Node) -> ir.Value | None:
    """What `node` gives the inverse of."""
    if is_one_of(node, (RECIPROCAL,)):
        return input_of(node)
    if is_one_of(node, (DIV,)) and None not in node.inputs:
        rank = _rank(input_of(node, 1))
        return input_of(node, 1) if rank is not None and number_of(node.inputs[0], rank) == 1 else None
    return None


def _squared(value: ir.Value) -> tuple[ir.Value, ir.Node] | None:
    """What `value` is the square of, and the node that makes it."""
    node = value.producer()
    if node is None or len(node.inputs) != 2 or None in node.inputs:
        return None
    if is_one_of(node, (MUL,)) and node.inputs[0] is node.inputs[1]:
        return input_of(node), node
    return (input_of(node), node) if _power(node) == 2 else None


def _centred(value: ir.Value) -> Mean | None:
    """What `value` is, less its own mean."""
    node = value.producer()
    if node is None or not is_one_of(node, (SUB,)) or None in node.inputs:
        return None
    mean = mean_of(input_of(node, 1))
    if mean is None or mean.given is not node.inputs[0]:
        return None
    return Mean(mean.given, mean.axes, mean.nodes | {node})


def _reduced(node: ir.Node) -> Mean | None:
    given = input_of(node)
    rank = _rank(given)
    axes = None if rank is None or not keeps_axes(node) else reduced_axes(node, rank)
    return None if axes is None else Mean(given, axes, frozenset({node}))


def _count(mean: Mean) -> int | None:
    """How many numbers each mean is over."""
    sizes = [size_along(mean.given, axis) for axis in mean.axes]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def _with_number(node: ir.Node, operators: Collection[Matched]) -> Iterator[tuple[ir.Value, float]]:
    """The input of `node`, one of `operators`, and the constant number that it meets, which is the second of a Div."""
    if not is_one_of(node, operators) or len(node.inputs) != 2 or None in node.inputs:
        return
    places = ((0, 1), (1, 0)) if node.op_type in ("Add", "Mul") else ((0, 1),)
    for place, other in places:
        rank = _rank(input_of(node, place))
        number = None if rank is None else number_of(node.inputs[other], rank)
        if number is not None:
            yield input_of(node, place), number


def _along(
    node: ir.Node, operator: Matched, value: ir.Value, axis: int, rank: int, size: int
) -> NDArray[np.generic] | None:
    """The constant [size] that `node`, an `operator`, joins to `value`, where it changes along `axis` alone."""
    if not is_one_of(node, (operator,)) or len(node.inputs) != 2:
        return None
    others = [other for other in node.inputs if other is not value]
    weight = weight_of(others[0]) if len(others) == 1 else None
    if weight is None or weight.ndim > rank or weight.dtype != np.float32:
        return None
    sizes = (1,) * (rank - weight.ndim) + weight.shape
    if sizes[axis] not in (1, size) or any(other != 1 for place, other in enumerate(sizes) if place != axis % rank):
        return None
    return np.broadcast_to(weight.reshape(-1), (size,)).copy()


def _is_whole(last: ir.Node, nodes: frozenset[ir.Node]) -> bool:
    """Whether nothing but `nodes`, all of one graph, reads what they make, besides the last."""
    inner = [node.outputs[0] for node in nodes if node is not last]
    read = all(not made.is_graph_output() and all(use.node in nodes for use in made.uses()) for made in inner)
    return read and all(node.graph is graph_of(last) for node in nodes)


def _rank(value: ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def size_along(value: ir.Value, axis: int) -> int | None:
    """The size of `value` along `axis`, where it is known."""
    size = None if value.shape is None else value.shape[axis]
    return size if isinstance(size, int) else None


def centred_under(value: ir.Value) -> Mean | None:
    """What `value` is the square of, less its own mean."""
    squared = _squared(value)
    return None if squared is None else _centred(squared[0])
