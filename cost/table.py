"""Rows that say where the time of an engine goes: by operator, by target, layer for layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from contracts.manifest import CpuLayer
from cost.model import CPU_TARGET, ENDPOINT_OPS, modelled_ms, on_cpu
from logs.layer_table import Layer

ENDPOINTS = "in/out"
"""The target under which input and output operators are summed, apart from the layers that run on the CPU."""

DEAREST = 10
"""Layers that are named as the dearest: what fits on a screen beside the other tables."""


@dataclass(frozen=True)
class CostRow:
    """The sum over some layers.

    Attributes:
        name: what they share: an operator and its target ("Slice (CPU)"), or a target.
        layers: how many they are.
        cycles: their cycles.
        rw_kb: their traffic in KB.
        modelled_ms: their share of the modelled time in ms.
    """

    name: str
    layers: int
    cycles: int
    rw_kb: float
    modelled_ms: float


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs.

    Attributes:
        op: its operator ("ConvAdd").
        target: "NPU" or "CPU"; "in/out" for input and output operators.
        name: its full name, `op:node` with the operator that it was made from; "" where the table does not say.
        cycles: its cycles.
        rw_kb: its traffic in KB.
        modelled_ms: its share of the modelled time in ms.
    """

    op: str
    target: str
    name: str
    cycles: int
    rw_kb: float
    modelled_ms: float


def by_operator(layers: Iterable[Layer]) -> tuple[CostRow, ...]:
    """A row for each operator and target, the most expensive first, equals by name."""
    return _rows(layers, lambda layer: f"{layer.op} ({_target(layer)})")


def by_target(layers: Iterable[Layer]) -> tuple[CostRow, ...]:
    """A row for the NPU, the CPU, and what hands tensors in and out, the most expensive first."""
    return _rows(layers, _target)


def dearest(layers: Iterable[Layer], count: int = DEAREST) -> tuple[LayerCost, ...]:
    """The `count` layers with the largest modelled time, the most expensive first, equals in the table's order."""
    return tuple(sorted(map(_layer_cost, layers), key=lambda cost: -cost.modelled_ms)[:count])


def cpu_layers(layers: Iterable[Layer]) -> tuple[LayerCost, ...]:
    """Every layer on the CPU, the most expensive first, equals in the table's order."""
    costs = [_layer_cost(layer) for layer in layers if on_cpu(layer)]
    return tuple(sorted(costs, key=lambda cost: -cost.modelled_ms))


def cpu_layers_of_sums(layers: Iterable[CpuLayer]) -> tuple[LayerCost, ...]:
    """`cpu_layers` from what a manifest keeps of them, where the table itself is not at hand.

    It keeps no cycles; the compiler prints none for layers on the CPU (measured, 2.3.2).
    """
    return cpu_layers(
        Layer(index, layer.op, "", CPU_TARGET, "", "", 0, 0, 0, layer.rw_kb, layer.name)
        for index, layer in enumerate(layers)
    )


def _rows(layers: Iterable[Layer], key: Callable[[Layer], str]) -> tuple[CostRow, ...]:
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(key(layer), []).append(layer)
    rows = [
        CostRow(
            name=name,
            layers=len(group),
            cycles=sum(layer.cycles for layer in group),
            rw_kb=sum(layer.rw_kb for layer in group),
            modelled_ms=modelled_ms(group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.modelled_ms, row.name)))


def _layer_cost(layer: Layer) -> LayerCost:
    return LayerCost(layer.op, _target(layer), layer.name, layer.cycles, layer.rw_kb, modelled_ms([layer]))


def _target(layer: Layer) -> str:
    return ENDPOINTS if layer.op in ENDPOINT_OPS else layer.target
