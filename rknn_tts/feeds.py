"""The inputs on which a graph is judged: the real ones it carries, or seeded stand-ins for a foreign graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import UserInput
from rknn_tts.carried import carried_feeds

SEED = 20240607


def feeds_of(model: ir.Model, where: str) -> tuple[dict[str, NDArray[Any]], ...]:
    """The feeds that `model` carries; where it carries none, one of standard normal values.

    Raises:
        UserInput: the carried ones are damaged, or a foreign graph's input is of no floating-point type.
    """
    return carried_feeds(model, where) or (_stand_in(model, where),)


def _stand_in(model: ir.Model, where: str) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(SEED)
    feed: dict[str, NDArray[Any]] = {}
    for value in model.graph.inputs:
        if value.name is None or value.name in model.graph.initializers:
            continue
        if value.dtype is None or not value.dtype.is_floating_point():
            raise UserInput(
                f"{where}: the input {value.name} is of type {value.dtype}; stand-ins are drawn for floating-point inputs only."
            )
        shape = [size for size in value.shape or () if isinstance(size, int)]
        feed[value.name] = rng.standard_normal(shape).astype(value.dtype.numpy())
    return feed
