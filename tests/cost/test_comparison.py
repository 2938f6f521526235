"""What changed in the cost from one engine to another."""

from __future__ import annotations

import math

import pytest

from cost.comparison import compare_operators, only_in_first, ratio
from cost.table import LayerCost, by_operator, cpu_layers
from tests.cost.layers import layer


def slices(*names: str) -> tuple[LayerCost, ...]:
    return cpu_layers([layer("Slice", target="CPU", name=name) for name in names])


def test_compare_operators_divides_by_the_units_of_each_side() -> None:
    # By hand: 4 Mcycles are 4 ms, in 2 frames 2 ms each; 9 Mcycles are 9 ms, in 3 frames 3 ms each.
    a = by_operator([layer("Conv", cycles=4_000_000)])
    b = by_operator([layer("Conv", cycles=4_000_000), layer("Conv", cycles=5_000_000)])
    (change,) = compare_operators(a, b, 2, 3)
    assert (change.name, change.layers_a, change.layers_b) == ("Conv (NPU)", 1, 2)
    assert (change.ms_a, change.ms_b, change.difference_ms) == (2.0, 3.0, 1.0)
    assert change.differs


def test_compare_operators_puts_the_largest_difference_first_whatever_its_sign() -> None:
    # Modelled: Slice on the CPU 0.5 MB, 0.1 + 2.5 ms; Sin 2.5 MB on the NPU, 0.5 ms; Add 5 MB, 1 ms on both sides.
    a = by_operator([layer("Slice", target="CPU", rw_kb=500), layer("Add", rw_kb=5000)])
    b = by_operator([layer("Sin", rw_kb=2500), layer("Add", rw_kb=5000)])
    changes = compare_operators(a, b, 1, 1)
    assert [change.name for change in changes] == ["Slice (CPU)", "Sin (NPU)", "Add (NPU)"]
    assert [round(change.difference_ms, 9) for change in changes] == [-2.6, 0.5, 0.0]
    assert [change.differs for change in changes] == [True, True, False]


def test_compare_operators_orders_equals_by_name() -> None:
    rows = by_operator([layer("B", rw_kb=1), layer("A", rw_kb=1)])
    assert [change.name for change in compare_operators((), rows, 1, 1)] == ["A (NPU)", "B (NPU)"]


def test_compare_operators_keeps_layers_that_cost_nothing_apart_from_none() -> None:
    (change,) = compare_operators((), by_operator([layer("Reshape")]), 1, 1)
    assert (change.difference_ms, change.differs) == (0.0, True)


def test_compare_operators_is_empty_without_rows() -> None:
    assert compare_operators((), (), 1, 1) == ()


def test_only_in_first_counts_layers_of_one_name_one_by_one() -> None:
    there = slices("a", "b")
    assert only_in_first(slices("a", "a", "c"), there) == slices("a", "c")
    assert only_in_first(slices("b"), there) == ()


def test_only_in_first_tells_operators_of_one_name_apart() -> None:
    first = cpu_layers([layer("Sin", target="CPU", name="x")])
    assert only_in_first(first, cpu_layers([layer("Cos", target="CPU", name="x")])) == first


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (4.0, 3.0, 0.75),
        (4, 0, 0.0),
        (0, 3, None),
        (0, 0, None),
        (None, 3, None),
        (4, None, None),
        (-4, 3, None),
        (4, -3, None),
        (math.nan, 3, None),
        (4, math.nan, None),
        (math.inf, 3, None),
        (4, math.inf, None),
    ],
)
def test_ratio_is_none_where_it_means_nothing(a: float | None, b: float | None, expected: float | None) -> None:
    assert ratio(a, b) == expected
