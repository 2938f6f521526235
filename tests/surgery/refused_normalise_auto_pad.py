"""What `normalise_auto_pad` refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from surgery.normalise_auto_pad import normalise_auto_pad
from tests.surgery.one_operator import operator
from tests.surgery.refusals import Refusal

_SAME: dict[str, Any] = {"auto_pad": "SAME_UPPER"}


def _built(op: str, kernel: int, **options: Any) -> ir.Model:
    if op.endswith("Pool"):
        return operator(op, kernel_shape=[kernel], **options)
    weights = {"w": np.ones((4, 4, kernel), np.float32)}
    return operator(op, "x w", constants=weights, **options)


def _refused(precondition: str, got: str, op: str, kernel: int, **options: Any) -> Refusal:
    return Refusal(normalise_auto_pad(), precondition, "node 'op'", got, lambda: _built(op, kernel, **options))


def _fed_weights() -> ir.Model:
    made = operator("Conv", "x w", fed={"w": (4, 4, 3)}, **_SAME)
    made.graph.inputs[1].shape = ir.Shape([4, 4, None])
    return made


REFUSALS = (
    _refused("a known input shape", "no static shape", "Conv", 3, shape=(1, 4, "n"), **_SAME),
    _refused("a known input shape", "no static shape", "ConvTranspose", 3, shape=(1, 4, "n"), output_shape=[9]),
    Refusal(normalise_auto_pad(), "a known kernel shape", "node 'op'", "neither", _fed_weights),
    _refused("an output_padding below the stride", "2", "ConvTranspose", 3, output_shape=[27], strides=[2]),
    _refused(
        "an output_padding below the stride", "2", "ConvTranspose", 2, output_shape=[28], dilations=[3], strides=[2]
    ),
    _refused("dilation 1 beside auto_pad SAME", "Conv has 2", "Conv", 3, dilations=[2], **_SAME),
    _refused("dilation 1 beside auto_pad SAME", "MaxPool has 3", "MaxPool", 3, dilations=[3], **_SAME),
    _refused(
        "a kernel as long as the stride beside auto_pad SAME", "the kernel has 1", "Conv", 1, strides=[4], **_SAME
    ),
    _refused(
        "a kernel as long as the stride beside auto_pad SAME", "the kernel has 1", "MaxPool", 1, strides=[3], **_SAME
    ),
    _refused(
        "a kernel as long as the stride beside auto_pad SAME",
        "the kernel has 2",
        "ConvTranspose",
        2,
        strides=[3],
        **_SAME,
    ),
)
