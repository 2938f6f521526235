"""Activations that are spelled out, h to y, in the ways that exporters have for them."""

from __future__ import annotations

from typing import Any

from tests.surgery.affine_graphs import node

HALF: dict[str, Any] = {"half": 0.5, "one": 1.0}
SIXTH: dict[str, Any] = {"three": 3.0, "low": 0.0, "six": 6.0}
GELU = HALF | {"root": 1.41421354}
TANH = HALF | {"cube": 3.0, "b": 0.044715, "a": 0.79788456}

GATE = (node("Div", "h root", "d"), node("Erf", "d", "e"), node("Add", "e one", "g"))
CUBIC = (
    node("Mul", "c b", "bc"), node("Add", "h bc", "sum"), node("Mul", "sum a", "d"), node("Tanh", "d", "e"),
    node("Add", "e one", "g"),
)  # fmt: skip
CLIPPED = (node("Add", "h three", "d"), node("Clip", "d low six", "g"))
LAST = (node("Mul", "h g", "p"), node("Mul", "p half", "y"))
BESIDE = (node("Mul", "h half", "p"), node("Mul", "p g", "y"))
ON_THE_GATE = (node("Mul", "g half", "p"), node("Mul", "h p", "y"))
POWER = node("Pow", "h cube", "c")
CUBED = (node("Mul", "h h", "q"), node("Mul", "q h", "c"))

KNOWN = {"gelu": "ConvExGelu", "gelu by tanh and products": "ConvExGelu", "hardswish": "ConvHardSwish"}
"""Some of them that the compiler makes one layer of with the convolution before (measured, 2.3.2)."""

SPELLED = {
    "gelu": ((*GATE, *LAST), GELU),
    "gelu, x halved": ((*GATE, *BESIDE), GELU),
    "gelu, its gate halved": ((*GATE, *ON_THE_GATE), GELU),
    "gelu by tanh": ((POWER, *CUBIC, *BESIDE), TANH),
    "gelu by tanh, halved last": ((POWER, *CUBIC, *LAST), TANH),
    "gelu by tanh and products": ((*CUBED, *CUBIC, *LAST), TANH),
    "hardswish": ((*CLIPPED, node("Mul", "h g", "p"), node("Div", "p six", "y")), SIXTH),
    "hardswish, its gate divided": ((*CLIPPED, node("Div", "g six", "p"), node("Mul", "h p", "y")), SIXTH),
}
