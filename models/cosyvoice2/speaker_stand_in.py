"""Seeded random weights of the speaker encoder: the true names, shapes and ranges, and nobody's voice; no torch.

Signals stay of about one from layer to layer, gates are neither shut nor open, and no statistic, scale or shift of a
normalisation is neutral or the same for all channels, so that nothing can be optimised away.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.speaker_config import Shape, SpeakerConfig, layout
from models.draws import uniform

RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

FBANK_SIZE = 3.0
"""Root mean square of the features, logarithms less their means: 2 to 4 in speech."""

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("running_mean", -0.3, 0.3),
    ("running_var", 0.5, 1.5),
    (".bias", -0.3, 0.3),
)
"""Least and largest number of the tensors whose names end so."""

_SCALES = (0.5, 1.5)
"""Of a normalisation's scales, the only weights of one axis."""

_RELU = 1.9
"""What layers behind a Relu make up for: it halves the power of a signal around zero, and what it leaves has a mean,
which those layers do not see."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("head.conv1.weight", 2 / FBANK_SIZE),
    (".conv2.weight", 0.7),  # what a block adds to its stream is smaller than that
    (".cam_layer.linear1.weight", 0.7),  # its input is the sum of two means
    (".cam_layer.linear2.weight", 1.0),
    ("linear_local.weight", 2.0),  # half of which its gate leaves
)
"""What layers whose names end so make of a root mean square of one; others make up for a Relu."""


def stand_in(config: SpeakerConfig, seed: int) -> dict[str, NDArray[np.float32]]:
    """Random weights of an encoder of these sizes, as a checkpoint holds them; the same for a seed on every machine."""
    return {name: _tensor(name, shape, seed) for name, shape in layout(config).items()}


def _tensor(name: str, shape: Shape, seed: int) -> NDArray[np.float32]:
    for ending, least, largest in _RANGES:
        if name.endswith(ending):
            return uniform(name, shape, seed, least, largest)
    if len(shape) == 1:
        return uniform(name, shape, seed, *_SCALES)
    gain = next((gain for ending, gain in _GAINS if name.endswith(ending)), _RELU)
    bound = gain * sqrt(3.0 / prod(shape[1:]))  # the root mean square of even numbers is a third's root
    made = uniform(name, shape, seed, -bound, bound)
    if shape[1] > 1:  # a Relu leaves a mean, the same for every voice, and all embeddings would be alike by it
        made -= made.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
    return made
