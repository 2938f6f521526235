"""Seeded random weights of a flow encoder: the true names, shapes and ranges, and nobody's voice; no torch.

What is drawn keeps every part at work and in range: the signal is of about one in front of the blocks, each of which
adds a third of its power or more, attention prefers some keys and some distances and none alone, and no norm, bias or
embedding is neutral or the same for all channels.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.encoder_config import EncoderConfig, Shape, layout
from models.draws import uniform

Weights = dict[str, NDArray[np.float32]]

RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

_RANGES: tuple[tuple[str, float, float], ...] = (
    (".norm_mha.weight", 0.5, 1.5),
    (".norm_ff.weight", 0.5, 1.5),
    ("after_norm.weight", 0.5, 1.5),
    ("pos_bias_u", -0.5, 0.5),
    ("pos_bias_v", -0.5, 0.5),
    (".bias", -0.1, 0.1),
)
"""Least and largest number of the tensors whose names end so."""

_EMBEDDED = ".out.1."
"""Norms whose result is multiplied by the root of the width: their weights are drawn so much smaller."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("linear_q.weight", 1.4),  # scores of about two: some keys weigh more than others, and none has all
    ("linear_k.weight", 1.4),
    ("linear_pos.weight", 1.0),  # of a table whose root mean square is that of a sine
    ("linear_v.weight", 1.5),  # a mean over keys is smaller than they are
    ("linear_out.weight", 1.5),
    ("w_2.weight", 1.5),  # SiLU makes smaller
    ("conv2.weight", 1.2),  # behind a LeakyReLU
)
"""What layers whose names end so make of a root mean square of one; others keep it."""


def stand_in(config: EncoderConfig, seed: int) -> Weights:
    """Random weights of an encoder of these sizes, as a checkpoint holds them; the same for a seed on every machine."""
    return {name: _tensor(name, shape, config, seed) for name, shape in layout(config).items()}


def _tensor(name: str, shape: Shape, config: EncoderConfig, seed: int) -> NDArray[np.float32]:
    if _EMBEDDED in name:
        least, largest = (0.5, 1.5) if name.endswith("weight") else (-0.1, 0.1)
        factor = sqrt(config.width)
        return uniform(name, shape, seed, least / factor, largest / factor)
    for ending, least, largest in _RANGES:
        if name.endswith(ending):
            return uniform(name, shape, seed, least, largest)
    gain = next((gain for ending, gain in _GAINS if name.endswith(ending)), 1.0)
    inputs = 1 if name.startswith("input_embedding") else prod(shape[1:])
    bound = gain * sqrt(3.0 / inputs)  # the root mean square of even numbers is a third's root of their bound
    return uniform(name, shape, seed, -bound, bound)
