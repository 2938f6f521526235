"""What changed in the cost from one engine to another, each scaled to the same unit of work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cost.table import CostRow, LayerCost


@dataclass(frozen=True)
class OperatorChange:
    """One operator on one target in both engines; zeros where an engine has none of it.

    Attributes:
        name: operator and target ("Slice (CPU)").
        layers_a, layers_b: how many layers.
        ms_a, ms_b: their modelled time in ms a unit of work.
        difference_ms: `ms_b - ms_a`.
    """

    name: str
    layers_a: int
    layers_b: int
    ms_a: float
    ms_b: float
    difference_ms: float

    @property
    def differs(self) -> bool:
        """Whether the layers or their time changed."""
        return self.layers_a != self.layers_b or self.ms_a != self.ms_b


def compare_operators(
    a: Iterable[CostRow], b: Iterable[CostRow], units_a: float, units_b: float
) -> tuple[OperatorChange, ...]:
    """Every row of `a` and `b`, the largest difference first, equals by name.

    Args:
        a, b: the rows of `cost.table.by_operator`, of one run.
        units_a, units_b: units of work of one run, such as the frames it emits.
    """
    rows_a, rows_b = {row.name: row for row in a}, {row.name: row for row in b}
    changes = []
    for name in rows_a | rows_b:
        row_a, row_b = rows_a.get(name), rows_b.get(name)
        ms_a = row_a.modelled_ms / units_a if row_a else 0.0
        ms_b = row_b.modelled_ms / units_b if row_b else 0.0
        changes.append(
            OperatorChange(
                name=name,
                layers_a=row_a.layers if row_a else 0,
                layers_b=row_b.layers if row_b else 0,
                ms_a=ms_a,
                ms_b=ms_b,
                difference_ms=ms_b - ms_a,
            )
        )
    return tuple(sorted(changes, key=lambda change: (-abs(change.difference_ms), change.name)))


def only_in_first(first: Iterable[LayerCost], second: Iterable[LayerCost]) -> tuple[LayerCost, ...]:
    """The layers of `first` that `second` lacks, told by operator and name, in their order.

    Several of one name count one by one.
    """
    there = Counter((layer.op, layer.name) for layer in second)
    missing = []
    for layer in first:
        key = (layer.op, layer.name)
        if there[key]:
            there[key] -= 1
        else:
            missing.append(layer)
    return tuple(missing)


def ratio(a: float | None, b: float | None) -> float | None:
    """`b / a`; None where one is missing, negative or not finite, or `a` is zero."""
    if a is None or b is None or not (0 < a < math.inf and 0 <= b < math.inf):
        return None
    return b / a
