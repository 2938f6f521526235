"""Operators that work element by element, so that their output has the time axis of their inputs."""

from __future__ import annotations

from surgery.matching import Matched

_PLAIN = (
    "Abs", "Add", "Cos", "Div", "Exp", "Identity", "Log", "Max", "Min", "Mul", "Neg", "PRelu", "Pow", "Relu",
    "Sigmoid", "Sin", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where",
)  # fmt: skip

_VALUE = "changes values, not where they stand"

ELEMENTWISE: tuple[Matched, ...] = (
    *(Matched(op) for op in _PLAIN),
    Matched("Cast", irrelevant={"to": _VALUE, "saturate": _VALUE}),
    Matched("Clip"),
    Matched("Elu", irrelevant={"alpha": _VALUE}),
    Matched("LeakyRelu", irrelevant={"alpha": _VALUE}),
)
"""What stands between the convolutions of the decoders we have met, and its neighbours."""
