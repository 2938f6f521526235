"""Seeded random weights of a flow estimator: the true names, shapes and ranges, and nobody's voice; no torch.

What is drawn keeps every part at work and in range, as trained weights do: the stream stays of one to three from block
to block, attention looks at some frames more than at others, every branch adds its share, no norm or bias is neutral or
the same for all channels, and the velocity is of about one, as the difference of a mel and noise is.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.estimator_config import EstimatorConfig, Shape, layout
from models.draws import uniform

Weights = dict[str, NDArray[np.float32]]

RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

_NORMS = (".norm1.weight", ".norm3.weight", ".block.2.weight")
_GAMMA = (0.5, 1.5)
_BIAS = (-0.1, 0.1)
"""Least and largest number of norms' weights, and of every bias."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("to_q.weight", 1.4),  # scores of about two: some frames weigh more than others, and none has all
    ("to_k.weight", 1.4),
    ("to_v.weight", 1.5),  # a mean over frames is smaller than they are
    ("to_out.0.weight", 0.4),  # a branch adds a tenth to the power of its stream
    ("ff.net.0.proj.weight", 1.0),
    ("ff.net.2.weight", 0.6),  # GELU makes smaller
    (".res_conv.weight", 0.7),  # the sum of a residual block and of what is beside it is of one
    (".mlp.1.weight", 1.0),
    ("time_mlp.linear_1.weight", 1.4),  # sines and cosines are of 0.7
    ("final_proj.weight", 1.5),  # Mish makes smaller
)
"""What layers whose names end so make of a root mean square of one; others keep it."""


def stand_in(config: EstimatorConfig, seed: int) -> Weights:
    """Random weights of an estimator of these sizes, under a checkpoint's names; the same on every machine."""
    return {name: _tensor(name, shape, seed) for name, shape in layout(config).items()}


def _tensor(name: str, shape: Shape, seed: int) -> NDArray[np.float32]:
    if name.endswith(_NORMS):
        return uniform(name, shape, seed, *_GAMMA)
    if name.endswith(".bias"):
        return uniform(name, shape, seed, *_BIAS)
    gain = next((gain for ending, gain in _GAINS if name.endswith(ending)), 1.0)
    bound = gain * sqrt(3.0 / prod(shape[1:]))  # the root mean square of even numbers is a third's root of their bound
    return uniform(name, shape, seed, -bound, bound)
