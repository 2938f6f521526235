"""A layer table in sum: what the manifest keeps of it."""

from __future__ import annotations

from contracts.manifest import CpuLayer, Layers, Memory
from cost.model import modelled_ms, on_cpu
from logs.layer_table import LayerTable


def summarise_layers(table: LayerTable, file: str | None = None) -> Layers:
    """Count, cycles, traffic, modelled time and CPU layers of `table`.

    Args:
        table: the compiler's layer table.
        file: the file that holds every layer, as the manifest shall name it.
    """
    layers = table.layers
    return Layers(
        count=len(layers),
        cycles=sum(layer.cycles for layer in layers),
        rw_kb=sum(layer.rw_kb for layer in layers),
        modelled_ms=modelled_ms(layers),
        cpu=tuple(CpuLayer(op=layer.op, name=layer.name, rw_kb=layer.rw_kb) for layer in layers if on_cpu(layer)),
        file=file,
    )


def summarise_memory(table: LayerTable) -> Memory | None:
    """The memory totals of `table`; None where the log did not state both."""
    if table.internal_kb is None or table.weight_kb is None:
        return None
    return Memory(internal_kb=table.internal_kb, weight_kb=table.weight_kb)
