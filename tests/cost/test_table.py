"""Where the time goes."""

from __future__ import annotations

import math

from cost.model import modelled_ms
from cost.table import by_operator
from tests.cost.layers import PIPER_W93, layer


def test_by_operator_puts_the_most_expensive_first() -> None:
    rows = by_operator(PIPER_W93)
    assert [row.name for row in rows] == [
        "Conv (NPU)",
        "LeakyRelu (NPU)",
        "ConvTranspose (NPU)",
        "Slice (CPU)",
        "OutputOperator (in/out)",
        "InputOperator (in/out)",
    ]
    assert (rows[3].layers, rows[3].cycles, rows[3].rw_kb) == (4, 0, 136)
    assert math.isclose(rows[3].modelled_ms, 0.7072)  # 0.136 / 5 + 5 * 0.136


def test_by_operator_keeps_npu_and_cpu_layers_of_one_operator_apart() -> None:
    rows = by_operator([layer("Slice", rw_kb=1), layer("Slice", rw_kb=1, target="CPU"), layer("Slice", rw_kb=1)])
    assert [(row.name, row.layers) for row in rows] == [("Slice (CPU)", 1), ("Slice (NPU)", 2)]


def test_by_operator_orders_equals_by_name() -> None:
    assert [row.name for row in by_operator([layer("B"), layer("A")])] == ["A (NPU)", "B (NPU)"]


def test_rows_add_up_to_the_modelled_time() -> None:
    assert math.isclose(sum(row.modelled_ms for row in by_operator(PIPER_W93)), modelled_ms(PIPER_W93))


def test_rows_are_none_without_layers() -> None:
    assert by_operator([]) == ()
