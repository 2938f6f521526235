"""What a flow's solver hands to its estimator, with drawn numbers: upstream's steps, and guidance's pair. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np

from contracts.seed import SEED
from converters.cosyvoice_solver import time_of
from converters.stages import Array
from models.draws import uniform

PROMPT_SHARE = 3
"""One frame in so many belongs to the prompt, whose mel the estimator is given."""

_EVEN = sqrt(3.0)
"""Numbers from -sqrt(3) to sqrt(3) have a root mean square of one, as a flow's noise."""


def rounded_time(step: int) -> float:
    """The time of a solver's step, from 0, rounded to fp16: what an engine makes of it."""
    return float(np.float16(time_of(step)))


def shown(shapes: Mapping[str, tuple[int, ...]], real: int, step: int) -> dict[str, Array]:
    """Inputs of `shapes`, the first `real` frames of them real, the rest padding with what is no zero in it.

    Both rows have the same noise; the first has conditions and the second, that of guidance, none.

    Args:
        shapes: of the estimator's inputs, by name.
        real: frames that the mask keeps.
        step: of the solver, which tells the time.
    """
    feed: dict[str, Array] = {
        name: uniform(f"cosyvoice3 {name}", shape, SEED, -_EVEN, _EVEN) for name, shape in shapes.items()
    }
    feed["t"] = np.full(shapes["t"], rounded_time(step), np.float32)
    feed["mask"] = np.broadcast_to(np.arange(shapes["mask"][-1]) < real, shapes["mask"]).astype(np.float32)
    feed["x"][1] = feed["x"][0]
    feed["cond"][..., -(-real // PROMPT_SHARE) : real] = 0.0
    for name in ("mu", "cond", "spks"):
        feed[name][1, ..., : real if feed[name].ndim == len(shapes["x"]) else None] = 0.0
    return feed
