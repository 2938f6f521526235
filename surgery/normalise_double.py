"""Make float32 of doubles.

Before: weights, inputs and outputs of float64 (numpy's default, phases summed in double precision).
After: the same operators in float32; casts between float types are gone, inputs and outputs are float32 and say so.
What depends on no input keeps its type until something varying reads it.

An engine has no float64 input: the simulator says "Unsupport inputs[0].dtype: float64" (measured, rknn-toolkit2 2.3.2,
rk3588). Doubles inside a graph build and are computed in float16 like everything else.

Preconditions: an input or output that becomes float32 has a known shape; no weight is beyond float32's range.

Bounded: float32 rounds to 24 bits, 144 dB down; 44 dB are left for the sum of many.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.float_types import IN_RANGE, KNOWN_SHAPE, make_float32

LEAST_DB = 100.0
"""Of the float32 graph against the double one; see the module's docstring."""

DECLARATION = Declaration(
    name="normalise_double",
    summary="make float32 of float64, inputs and outputs too",
    exactness=Bounded(LEAST_DB, "float32 rounds to 24 bits, 144 dB down, where the original rounded to 53"),
    after=frozenset({"fold_dequantised_weights", "rewrite_noise_as_inputs"}),
    preconditions=(KNOWN_SHAPE, IN_RANGE),
)


def normalise_double() -> Pass:
    """The pass; its hits are values."""

    def rewrite(model: ir.Model) -> Rewritten:
        return make_float32(model, (ir.DataType.DOUBLE,), DECLARATION.name)

    return Pass(DECLARATION, rewrite)
