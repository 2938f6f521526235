"""What is said of a convolution's length is what onnxruntime makes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.convolution_length import WHOLE_RATE, length_fault
from tests.onnx_runs import run
from tests.surgery.refusals import small_decoder

STEPS = 24
SIZES = [
    {"strides": [stride], "dilations": [dilation], "pads": [left, right]}
    for stride, dilation, left, right in product((1, 2, 3), (1, 2), (0, 1, 2), (0, 1, 2))
]


def made_steps(model: ir.Model) -> int:
    for value in model.graph.inputs:
        value.shape = ir.Shape([1, 1, STEPS])
    feed = {"z": np.ones((1, 1, STEPS), np.float32), "y_mask": np.ones((1, 1, STEPS), np.float32)}
    return int(run(model, feed)["audio"].shape[-1])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("output_padding", [0, 1])
def test_length_fault_is_none_just_where_the_rate_is_exact(op: str, output_padding: int, sizes: dict[str, Any]) -> None:
    more: dict[str, Any] = (
        {"output_padding": [output_padding]} if op == "ConvTranspose" and sizes["strides"] != [1] else {}
    )
    model = small_decoder(op, **sizes, **more)
    stride = sizes["strides"][0]
    exact = STEPS * stride if op == "ConvTranspose" else STEPS // stride
    fault = length_fault(next(node for node in model.graph if node.name == "net"))
    assert (fault is None) == (made_steps(model) == exact)
    assert fault is None or fault.precondition == WHOLE_RATE
