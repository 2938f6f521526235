"""Convolutions along one axis as the sums that define them: [C, T] and [M, C, k], float64, no groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.convolution_fields import Axis

Values = NDArray[np.float64]


def convolved(x: Values, weight: NDArray[Any], axis: Axis) -> Values:
    """y[o] = sum of w[k] x[s o + d k - pad] (ONNX operator specification of Conv)."""
    made = np.zeros((weight.shape[0], axis.steps))
    for step in range(axis.steps):
        for tap in range(axis.kernel):
            at = axis.stride * step + axis.dilation * tap - axis.pad_begin
            if 0 <= at < axis.length:
                made[:, step] += weight[:, :, tap] @ x[:, at]
    return made


def transposed(x: Values, weight: Values, axis: Axis, output_padding: int) -> Values:
    """Every x[i] w[k] goes to y[s i + d k - pad] (ONNX operator specification of ConvTranspose); weight [C, M, k]."""
    length = axis.stride * (axis.length - 1) + axis.reach + output_padding - axis.pad_begin - axis.pad_end
    made = np.zeros((weight.shape[1], length))
    for step in range(axis.length):
        for tap in range(axis.kernel):
            at = axis.stride * step + axis.dilation * tap - axis.pad_begin
            if 0 <= at < length:
                made[:, at] += weight[:, :, tap].T @ x[:, step]
    return made
