"""Rows that say where the time of an engine goes: by operator, on the NPU and on the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cost.model import ENDPOINT_OPS, modelled_ms
from logs.layer_table import Layer

ENDPOINTS = "in/out"
"""The target under which input and output operators are summed, apart from the layers that run on the CPU."""


@dataclass(frozen=True)
class CostRow:
    """The sum over some layers.

    Attributes:
        name: what they share: an operator and its target ("Slice (CPU)").
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


def by_operator(layers: Iterable[Layer]) -> tuple[CostRow, ...]:
    """A row for each operator and target, the most expensive first, equals by name."""
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(f"{layer.op} ({_target(layer)})", []).append(layer)
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


def _target(layer: Layer) -> str:
    return ENDPOINTS if layer.op in ENDPOINT_OPS else layer.target
