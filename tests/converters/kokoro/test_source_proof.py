from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir
import pytest

from contracts.errors import Refusal
from converters.kokoro.source_proof import host_inputs

Input = tuple[str, ir.DataType, tuple[int | str, ...]]


def model(*inputs: Input) -> ir.Model:
    values = [ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape)) for name, dtype, shape in inputs]
    return ir.Model(ir.Graph(values, [], nodes=[], opset_imports={"": 18}), ir_version=10)


INTS, FLOATS = ir.DataType.INT64, ir.DataType.FLOAT
TOKENS: Input = ("ids", INTS, (1, "length"))
STYLE: Input = ("ref_s", FLOATS, (1, 256))
SPEED: Input = ("pace", FLOATS, (1,))


def test_host_inputs_are_told_apart_by_type_and_rank() -> None:
    assert host_inputs(model(SPEED, STYLE, TOKENS), Path("k.onnx")) == ("ids", "ref_s", "pace")


@pytest.mark.parametrize(
    "inputs",
    [
        (TOKENS, STYLE),
        (TOKENS, STYLE, SPEED, ("noise", FLOATS, (1, 9))),
        (STYLE, SPEED, ("x", FLOATS, (1, 4, 4))),
        (TOKENS, STYLE, ("other", FLOATS, (1, 256))),
        (TOKENS, ("length", INTS, (1,)), STYLE),
        (),
    ],
)
def test_host_inputs_are_refused_when_they_are_others(inputs: Sequence[Input]) -> None:
    names = ", ".join(name for name, _, _ in inputs)
    told = rf"^k\.onnx: tokens, a style \[1, 256\] and a speed \[1\] are a Kokoro's inputs, and it has {names}\.$"
    with pytest.raises(Refusal, match=told):
        host_inputs(model(*inputs), Path("k.onnx"))
