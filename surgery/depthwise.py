"""An affine step, channel by channel, as a depthwise 1x1 convolution.

The compiler fuses a convolution with the activation, the sum or the product behind it (`ConvLeakyRelu`, `ConvAdd`,
`ConvMul`), and a Mul and an Add with nothing: the convolution passes over the tensor once (toolkit-facts, Sine).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import ArrayLike

from surgery.graph_builder import Builder, sizes_of


def depthwise(make: Builder, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
    """`value` [N, C, ...] times `scale` plus `shift`.

    Args:
        make: adds the node.
        value: of a static shape and a float type, one axis or more behind the channels.
        scale: one number, or one for each channel [C].
        shift: the same; None for no bias.
        what: the node's name behind the builder's prefix.
    """
    sizes = sizes_of(value)
    channels, spatial = sizes[1], len(sizes) - 2
    assert value.dtype is not None
    kind = value.dtype.numpy()
    weight = np.broadcast_to(np.asarray(scale, kind), channels).reshape(channels, 1, *[1] * spatial)
    inputs = [value, make.constant(f"{what}_scale", np.ascontiguousarray(weight))]
    if shift is not None:
        bias = np.broadcast_to(np.asarray(shift, kind), channels)
        inputs.append(make.constant(f"{what}_shift", np.ascontiguousarray(bias)))
    return make.add("Conv", inputs, sizes, what, group=channels, kernel_shape=[1] * spatial)
