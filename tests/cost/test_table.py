"""Where the time goes."""

from __future__ import annotations

import math

from contracts.manifest import CpuLayer
from cost.model import modelled_ms
from cost.table import by_operator, by_target, cpu_layers, cpu_layers_of_sums, dearest
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


def test_by_target_keeps_inputs_and_outputs_apart_from_the_cpu() -> None:
    rows = by_target(PIPER_W93)
    assert [(row.name, row.layers, row.cycles, row.rw_kb) for row in rows] == [
        ("NPU", 3, 8_300_308, 83_530.0),
        ("CPU", 4, 0, 136.0),
        ("in/out", 2, 0, 1488.0),
    ]
    # By hand: 8.300308 + 83.53 / 5; 0.136 / 5 + 5 * 0.136; 1.488 / 5.
    assert [round(row.modelled_ms, 6) for row in rows] == [25.006308, 0.7072, 0.2976]


def test_dearest_names_the_layers_that_cost_most() -> None:
    costs = dearest(PIPER_W93, 2)
    assert [(cost.op, cost.target, cost.cycles, cost.rw_kb) for cost in costs] == [
        ("Conv", "NPU", 5_244_692, 50_000),
        ("LeakyRelu", "NPU", 0, 31_241),
    ]
    assert [round(cost.modelled_ms, 6) for cost in costs] == [15.244692, 6.2482]


def test_dearest_names_ten_when_there_are_more() -> None:
    assert [cost.name for cost in dearest([layer(rw_kb=1, name=str(number)) for number in range(12)])] == [
        str(number) for number in range(10)
    ]


def test_cpu_layers_are_every_layer_on_the_cpu_and_no_input_or_output() -> None:
    costs = cpu_layers(PIPER_W93)
    assert [cost.name for cost in costs] == [f"Slice:/flow/flows.{number}/Slice" for number in (7, 5, 3, 1)]
    assert {round(cost.modelled_ms, 6) for cost in costs} == {0.1768}


def test_cpu_layers_of_sums_are_those_of_the_table() -> None:
    sums = [CpuLayer("Slice", "Slice:a", 34), CpuLayer("Sin", "Sin:b", 1000)]
    table = [layer(one.op, target="CPU", rw_kb=one.rw_kb, name=one.name) for one in sums]
    assert cpu_layers_of_sums(sums) == cpu_layers(table)
    assert [cost.op for cost in cpu_layers_of_sums(sums)] == ["Sin", "Slice"]


def test_tables_are_empty_without_layers() -> None:
    assert (by_target([]), dearest([]), cpu_layers([]), cpu_layers_of_sums([])) == ((), (), (), ())
