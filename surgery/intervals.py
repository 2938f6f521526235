"""Intervals of the numbers of a tensor: of products and sums with constants, and of sums by weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surgery.linear_layers import Array

_PART = 2**20
"""Most weights that are looked at at once: as doubles, which they are turned to, they fit the caches then."""


@dataclass(frozen=True)
class Range:
    """Every number of a value lies from `low` to `high`; both broadcast with it."""

    low: Array
    high: Array

    def times(self, factors: Array) -> Range:
        """Of the product with constants."""
        ends = product(self.low, factors), product(self.high, factors)
        return Range(np.minimum(*ends), np.maximum(*ends))

    def plus(self, other: Range) -> Range:
        """Of the sum."""
        return Range(self.low + other.low, self.high + other.high)

    def around(self, other: Range) -> Range:
        """Of what is one or the other."""
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def along(self, axis: int, rank: int) -> Range:
        """With one bound, or one for each place along `axis`, of a value of `rank`: [1] or [size]."""

        def narrowed(bounds: Array, over: Callable[..., Array]) -> Array:
            full = bounds.reshape((1,) * (rank - bounds.ndim) + bounds.shape)
            return over(full, axis=tuple(place for place in range(rank) if place != axis % rank)).reshape(-1)

        return Range(narrowed(self.low, np.min), narrowed(self.high, np.max))

    def placed(self, axis: int, rank: int) -> Range:
        """Bounds [size] as those of a value of `rank` along `axis`."""
        shape = [1] * rank
        shape[axis] = -1
        return Range(self.low.reshape(shape), self.high.reshape(shape))

    @property
    def is_open(self) -> bool:
        """Whether nothing is known."""
        return bool(np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high)))


OPEN = Range(np.array(-np.inf), np.array(np.inf))


def product(bounds: Array, factors: Array) -> Array:
    """Where a factor is 0, so is the product, however far the bound is."""
    with np.errstate(invalid="ignore"):
        made = bounds * factors
    return np.where((factors == 0) | (bounds == 0), 0.0, made)


def weighted(weights: Array, data: Range) -> Range:
    """Of sums over the last two axes of `weights` [group, made, taken, ...]; `data` [group, 1, taken] or [1].

    None of the axes is empty.
    """
    group, made, taken, _ = weights.shape
    if data.is_open:
        reached = np.where(_any_nonzero(weights.reshape(group * made, -1)), np.inf, 0.0)
        return Range(-reached, reached)
    low, high = (np.broadcast_to(end, (group, 1, taken)) for end in (data.low, data.high))
    many = max(1, _PART // max(1, weights[:, :1].size))
    parts = [_ends(weights[:, first : first + many], Range(low, high)) for first in range(0, made, many)]
    return Range(*(np.concatenate(ends, axis=1).reshape(-1) for ends in zip(*parts, strict=True)))


def _any_nonzero(rows: Array) -> Array:
    """Of each of `rows`; most show it in their first place."""
    found: Array = np.any(rows[:, :1] != 0, axis=1)
    found[~found] = np.any(rows[~found] != 0, axis=1)
    return found


def _ends(weights: Array, data: Range) -> tuple[Array, Array]:
    """The bounds [group, made] of sums as in `weighted`."""
    exact = weights.astype(np.float64)
    below, above = (exact.clip(*ends) for ends in ((None, 0), (0, None)))
    if exact.shape[-1] > 1:
        below, above = (factors.sum(axis=-1, keepdims=True) for factors in (below, above))
    low = _sums(above, data.low) + _sums(below, data.high)
    return low, _sums(above, data.high) + _sums(below, data.low)


def _sums(factors: Array, bounds: Array) -> Array:
    """The sums [group, made] of `factors` [group, made, taken, 1], of one sign, by `bounds` [group, 1, taken].

    Where a factor is 0, so is its product, however far the bound is; bounds that are infinite are so on one side.
    """
    infinite = np.isinf(bounds)
    made = _dot(factors, np.where(infinite, 0.0, bounds))
    if not np.any(infinite):
        return made
    far = _dot(factors, np.where(infinite, np.sign(bounds), 0.0))
    return np.where(far == 0, made, np.copysign(np.inf, far))


def _dot(factors: Array, numbers: Array) -> Array:
    """By einsum, which is as quick here whatever the strides are: of a MatMul, the rows are columns of the file's."""
    with np.errstate(invalid="ignore", over="ignore"):  # such bounds are taken for none
        made: Array = np.einsum("gmk,gk->gm", factors[..., 0], numbers[:, 0])
    return made
