"""A layer table in sum."""

from __future__ import annotations

import math

import pytest

from contracts.manifest import CpuLayer, Memory
from cost.summary import summarise_layers, summarise_memory
from logs.layer_table import LayerTable
from tests.cost.layers import PIPER_W93


def test_summarise_layers_sums_the_table_and_names_the_cpu_layers() -> None:
    layers = summarise_layers(LayerTable(PIPER_W93, 10420.5, 17129.8), "build-logs/x.layers.json")
    assert (layers.count, layers.cycles, layers.rw_kb) == (9, 8_300_308, 85_154)
    assert math.isclose(layers.modelled_ms, 26.011108)
    assert layers.cpu == tuple(CpuLayer("Slice", f"Slice:/flow/flows.{number}/Slice", 34) for number in (7, 5, 3, 1))
    assert layers.file == "build-logs/x.layers.json"


def test_summarise_layers_is_zero_when_the_table_is_empty() -> None:
    layers = summarise_layers(LayerTable((), None, None))
    assert (layers.count, layers.cycles, layers.rw_kb, layers.modelled_ms, layers.cpu) == (0, 0, 0, 0, ())
    assert layers.file is None


@pytest.mark.parametrize(
    ("internal_kb", "weight_kb", "memory"),
    [(10420.5, 17129.8, Memory(10420.5, 17129.8)), (None, 1.0, None), (1.0, None, None), (0.0, 0.0, Memory(0.0, 0.0))],
)
def test_summarise_memory_needs_both_totals(
    internal_kb: float | None, weight_kb: float | None, memory: Memory | None
) -> None:
    assert summarise_memory(LayerTable((), internal_kb, weight_kb)) == memory
