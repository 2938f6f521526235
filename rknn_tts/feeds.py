"""Inputs on which a foreign graph is judged: seeded stand-ins for the real ones that nobody gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import UserInput
from contracts.seed import SEED


def stand_in_feed(model: ir.Model, where: str) -> dict[str, NDArray[Any]]:
    """Standard normal values for every input of `model`.

    Raises:
        UserInput: an input is of no floating-point type.
    """
    rng = np.random.default_rng(SEED)
    feed: dict[str, NDArray[Any]] = {}
    for value in model.graph.inputs:
        if value.name is None or value.name in model.graph.initializers:
            continue
        if value.dtype is None or not value.dtype.is_floating_point():
            raise UserInput(
                f"{where}: the input {value.name} is of type {value.dtype}; "
                "stand-ins are drawn for floating-point inputs only."
            )
        shape = [size for size in value.shape or () if isinstance(size, int)]
        feed[value.name] = rng.standard_normal(shape).astype(value.dtype.numpy())
    return feed
