"""Inputs on which a foreign graph is judged: those that the user gives, or seeded stand-ins for them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import UserInput
from contracts.seed import SEED
from rknn_tts.carried import FEEDS_LIMIT_BYTES
from rknn_tts.hints import called
from rknn_tts.index_ranges import index_sizes

STAND_IN_LIMIT_BYTES = 1 << 28
"""Largest input that a stand-in is drawn for: drawing takes three times that, and all inputs of an engine lie in the
board's memory beside its weights. A file may claim any size."""


def stand_in_feed(model: ir.Model, where: str, unused: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Values for every input of `model`: indices over the whole axis that they index, else standard normal ones.

    Args:
        model: its inputs have static shapes; sizes that are open are left out of a shape.
        where: what sentences call the file.
        unused: inputs that no output depends on: ones do, where nothing says what else.

    Raises:
        UserInput: an input is of integers or truth values that index nothing, of no numbers, or too large.
    """
    rng = np.random.default_rng(SEED)
    inputs = [value for value in model.graph.inputs if value.name is not None and not value.is_initializer()]
    _check_kinds_and_sizes(inputs, where, unused)
    sizes = index_sizes(model)
    feed: dict[str, NDArray[Any]] = {}
    for value in inputs:
        assert value.dtype is not None
        name, dtype = str(value.name), value.dtype.numpy()
        if name in sizes and value.dtype != ir.DataType.BOOL:
            feed[name] = rng.integers(0, min(sizes[name], _most_indices(value.dtype)), _shape(value)).astype(dtype)
        elif value.dtype.is_floating_point():
            feed[name] = rng.standard_normal(_shape(value)).astype(dtype)
        elif name in unused:
            feed[name] = unused_array(value)
        else:
            raise UserInput(f"{where}: {_not_drawn(value)}")
    return feed


def unused_array(value: ir.Value) -> NDArray[Any]:
    """Something for the input `value` of static shape, that no output depends on.

    No zeros: a node that nothing reads is run all the same, and a whole number divided by zero ends the process.
    """
    if value.dtype == ir.DataType.STRING:
        return np.full(_shape(value), "", dtype=np.object_)
    return np.ones(_shape(value), dtype=np.float32 if value.dtype is None else value.dtype.numpy())


_TEXT_BYTES = 8
"""Of an empty text among others: numpy keeps a pointer."""

_NO_NUMBERS = (ir.DataType.STRING, ir.DataType.COMPLEX64, ir.DataType.COMPLEX128, ir.DataType.UNDEFINED)


def _most_indices(dtype: ir.DataType) -> int:
    """How many whole numbers, one after another from 0 on, this type holds."""
    if dtype.is_floating_point():
        return int(2 ** (dtype.mantissa_bitwidth + 1))
    return int(2 ** (dtype.bitwidth - dtype.is_signed()))


def _shape(value: ir.Value) -> list[int]:
    return [size for size in value.shape or () if isinstance(size, int)]


def _check_kinds_and_sizes(inputs: list[ir.Value], where: str, unused: Collection[str]) -> None:
    total_bytes = 0
    for value in inputs:
        name = called(str(value.name))
        if value.dtype is None or (value.dtype in _NO_NUMBERS and value.name not in unused):
            kind = "unknown" if value.dtype is None else value.dtype.name.lower()
            raise UserInput(f"{where}: the input {name} is of type {kind}, and the NPU takes numbers only.")
        shape = _shape(value)
        value_bytes = _TEXT_BYTES if value.dtype == ir.DataType.STRING else math.ceil(value.dtype.itemsize)
        size_bytes = math.prod(shape) * value_bytes
        total_bytes += size_bytes
        if size_bytes > STAND_IN_LIMIT_BYTES or total_bytes > FEEDS_LIMIT_BYTES:
            raise UserInput(
                f"{where}: the input {name} of shape {shape} takes {size_bytes / 1e9:.1f} GB, and stand-ins are "
                f"drawn up to {STAND_IN_LIMIT_BYTES / 1e9:.1f} GB an input and {FEEDS_LIMIT_BYTES / 1e9:.1f} GB in "
                "all: give it smaller sizes with --shape."
            )


def _not_drawn(value: ir.Value) -> str:
    name, kind = called(str(value.name)), value.dtype.name.lower() if value.dtype is not None else "no known type"
    shape = ",".join(map(str, _shape(value)))
    return (
        f"the input {name} is {kind} of shape [{shape}] and indexes no axis of known size, so that nothing says "
        "which values it takes: give real inputs with --inputs FILE.npz, which holds an array for each input, this "
        f'one under the name "{value.name}" (numpy.savez).'
    )
