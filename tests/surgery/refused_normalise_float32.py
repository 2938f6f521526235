"""Graphs of half floats that cannot become float32."""

from __future__ import annotations

import functools

import onnx_ir as ir
from onnx import TensorProto

from surgery.float_types import KNOWN_SHAPE
from surgery.normalise_float32 import normalise_float32
from tests.surgery.float_graphs import scaled
from tests.surgery.refusals import Refusal


def _open(kind: int) -> Refusal:
    build = functools.partial(scaled, kind, shape=["n", 4])
    return Refusal(normalise_float32(), KNOWN_SHAPE, "input 'x'", "[n, 4]", lambda: ir.from_proto(build()))


REFUSALS = (_open(TensorProto.FLOAT16), _open(TensorProto.BFLOAT16))
