"""Make float32 of half floats and of bfloat16.

Before: weights, inputs and outputs of float16 or bfloat16 (torch's `model.half()`, with float32 inputs and outputs or
without). After: the same operators in float32; casts between float types are gone, inputs and outputs are float32 and
say so.

The toolkit takes float16 as it is and is right (measured, rknn-toolkit2 2.3.2, rk3588: 35 graphs, 63 dB or better), yet
the engine gives float32 where the graph says float16, and the reference would be rounded as often as the engine. With
bfloat16 it stops: "No corresponding Numpy type for Tensor Type".

Preconditions: an input or output that becomes float32 has a known shape.

Bounded: what is left out is the rounding of the original. One rounding to 11 bits lies 66 dB down; they add up over a
deep graph, and 40 dB is what the engine, which rounds to the same 11 bits, is held to (contracts.thresholds). bfloat16
rounds to 8 bits (48 dB).
"""

from __future__ import annotations

import onnx_ir as ir

from contracts.thresholds import SIMULATOR_DB
from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.float_types import KNOWN_SHAPE, make_float32

DECLARATION = Declaration(
    name="normalise_float32",
    summary="make float32 of float16 and bfloat16, inputs and outputs too",
    exactness=Bounded(SIMULATOR_DB, "it leaves out the original's own rounding to 11 or 8 bits, node by node"),
    after=frozenset({"fold_dequantised_weights", "rewrite_noise_as_inputs"}),
    preconditions=(KNOWN_SHAPE,),
)

HALVES = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def normalise_float32() -> Pass:
    """The pass; its hits are values."""

    def rewrite(model: ir.Model) -> Rewritten:
        return make_float32(model, HALVES, DECLARATION.name)

    return Pass(DECLARATION, rewrite)
