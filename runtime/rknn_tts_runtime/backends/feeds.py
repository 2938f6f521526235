"""What is fed to an engine, checked and brought into the engine's own order and shapes.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.manifest import TensorInfo


def fitted(inputs: Sequence[TensorInfo], feed: Mapping[str, Array], whose: str = "the engine") -> list[Array]:
    """The arrays of `feed` in the order of `inputs`, each of its input's shape; copied only where that needs it.

    How they lie in memory is left to whoever hands them over: the NPU takes other orders than onnxruntime.

    Args:
        inputs: what the engine takes.
        feed: every input by name, of its dtype. Axes of one may be missing or too many; an array of one axis holds the
            elements in their order.
        whose: what messages call the engine.

    Raises:
        BadInput: an input is missing or not known, or has another dtype or shape.
    """
    names = [info.name for info in inputs]
    listed = ", ".join(names) or "none"
    for name in feed:
        if name not in names:
            raise BadInput(f"{whose}: has no input '{name}'; its inputs are {listed}.")
    for name in names:
        if name not in feed:
            raise BadInput(f"{whose}: its input '{name}' is missing; its inputs are {listed}.")
    return [_fitted(info, np.asarray(feed[info.name]), whose) for info in inputs]


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """`array` in the shape `shape`, where they differ in axes of one, or `array` is flat; None where it cannot be."""
    flat = array.ndim == 1 and array.size == np.prod(shape, dtype=np.int64)
    if not flat and without_ones(array.shape) != without_ones(shape):
        return None
    return array.reshape(shape)


def _fitted(info: TensorInfo, array: Array, whose: str) -> Array:
    if array.dtype != np.dtype(info.dtype):
        raise BadInput(f"{whose}: its input '{info.name}' is of dtype {info.dtype}, not {array.dtype}.")
    fit = reshaped(array, info.shape)
    if fit is None:
        raise BadInput(f"{whose}: its input '{info.name}' has the shape {list(info.shape)}, not {list(array.shape)}.")
    return fit


def without_ones(shape: Sequence[int]) -> list[int]:
    """The axes of `shape` that are no one: all that an order of elements depends on."""
    return [size for size in shape if size != 1]
