"""The modelled time of an engine, from its layer table alone (design, Cost). A model: always shown as "modelled".

    modelled_ms = cycles / 1e6 + rw_mb / 5 + 5 * cpu_rw_mb

Elementwise layers show 0 cycles and a real traffic, so both columns count. Against the reference's board: Piper w93 26
modelled, 20.7 measured; Kokoro w128 781, 763; Qwen3 64-code step 3111, 3090.
"""

from __future__ import annotations

from collections.abc import Iterable

from logs.layer_table import Layer

CYCLES_PER_MS = 1e6
"""The NPU at 1 GHz (design, Cost)."""

TRAFFIC_MB_PER_MS = 5.0
"""5 GB/s for the traffic of all layers (design, Cost)."""

CPU_MS_PER_MB = 5.0
"""What a layer on the CPU costs besides, for each MB of its traffic (design, Cost)."""

KB_PER_MB = 1000.0
"""As GB/s is meant: 1 MB = 1000 KB. (With 1024 the three figures above change by 2 %, less than the model is worth.)"""

CPU_TARGET = "CPU"

ENDPOINT_OPS = frozenset({"InputOperator", "OutputOperator"})
"""Operators that hand tensors in and out. Listed as CPU layers, they are none (design, Manifest: `cpu`)."""


def modelled_ms(layers: Iterable[Layer]) -> float:
    """The modelled time in ms of one run of an engine with these layers; 0 for none."""
    cycles, rw_kb, cpu_rw_kb = 0, 0.0, 0.0
    for layer in layers:
        cycles += layer.cycles
        rw_kb += layer.rw_kb
        cpu_rw_kb += layer.rw_kb if on_cpu(layer) else 0.0
    traffic_ms = rw_kb / KB_PER_MB / TRAFFIC_MB_PER_MS
    return cycles / CYCLES_PER_MS + traffic_ms + cpu_rw_kb / KB_PER_MB * CPU_MS_PER_MB


def on_cpu(layer: Layer) -> bool:
    """Whether the compiler placed `layer` on the CPU; False for input and output operators."""
    return layer.target == CPU_TARGET and layer.op not in ENDPOINT_OPS
