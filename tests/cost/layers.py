"""Layers made by hand."""

from __future__ import annotations

from logs.layer_table import Layer


def layer(op: str = "Conv", *, target: str = "NPU", cycles: int = 0, rw_kb: float = 0.0, name: str = "") -> Layer:
    """A layer with these figures."""
    return Layer(0, op, "FLOAT16", target, "\\", "\\", 0, cycles, cycles, rw_kb, name)


PIPER_W93 = (
    layer("InputOperator", target="CPU"),
    *(layer("Slice", target="CPU", rw_kb=34, name=f"Slice:/flow/flows.{number}/Slice") for number in (7, 5, 3, 1)),
    layer("ConvTranspose", cycles=3_055_616, rw_kb=2289),
    layer("Conv", cycles=5_244_692, rw_kb=50_000),
    layer("LeakyRelu", rw_kb=31_241),
    layer("OutputOperator", target="CPU", rw_kb=1488),
)
"""The Piper decoder, window 93, rk3588: the totals of its table (8 300 308 cycles, 85 154 KB, 4 CPU layers), in few."""
