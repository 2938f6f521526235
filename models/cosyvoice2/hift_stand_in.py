"""Seeded random weights of CosyVoice2's vocoder: the true names, shapes and ranges, and nobody's voice; no torch.

What is drawn keeps every part at work and in range: signals stay of about one from layer to layer, as trained ones do,
no bias or alpha is neutral or the same for all channels, pitches are those of speech and some frames have no voice, and
the spectrogram is neither silent nor near where it is clipped.
"""

from __future__ import annotations

from math import log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.hift_config import BINS, UPSAMPLE_RATES, HiftConfig, Shape, layout
from models.draws import uniform

Weights = dict[str, NDArray[np.float32]]

RECIPE = 2
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

LEAST_ALPHA, LARGEST_ALPHA = 0.1, 2.0
"""Of a Snake, even in their logarithms. Trained ones start at 1."""

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("classifier.bias", 80.0, 100.0),  # Hz
    ("conv_post.bias", -0.5, 0.5),
    (".bias", -0.1, 0.1),
    ("l_linear.weight", -1.0, 1.0),
)
"""Least and largest number of the tensors whose names end so."""

_QUIET = -3.0
"""Added to the biases of the magnitudes' logarithms."""

_MEL_SIZE = 6.0
"""Root mean square of a mel spectrogram of speech, a logarithm of -11.5 to 2."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("conv_pre.weight", 1.2 / _MEL_SIZE),
    ("condnet.0.weight", 1.5 / _MEL_SIZE),
    ("classifier.weight", 70.0),  # Hz
    ("conv_post.weight", 0.6),
)
"""What layers whose names end so make of a root mean square of one."""

_GAINS_WITHIN: tuple[tuple[str, float], ...] = (
    ("ups.", 1.0),  # LeakyRelu and ELU make smaller
    ("condnet.", 1.4),
    ("source_downs.", 4.0),  # the source's spectrogram is small
    ("convs1.", 1 / 1.35),  # a Snake makes larger
    ("convs2.", 0.4 / 1.2),  # a step adds less than a fifth to the power of its stream
)
"""The same by a part of their names."""


def stand_in(config: HiftConfig, seed: int) -> Weights:
    """Random weights of a vocoder of these sizes, as a `hift.pt` holds them; the same for a seed on every machine.

    The convolutions that a checkpoint has in weight norm are in it: `models.weight_norm.folded` takes them.
    """
    made: Weights = {}
    for name, shape in layout(config).items():
        tensor = _tensor(name, shape, seed)
        if len(shape) < 3 or name.startswith("source_downs."):
            made[name] = tensor
            continue
        stem = name.removesuffix(".weight") + ".parametrizations.weight."
        gain = np.sqrt(np.square(tensor, dtype=np.float64).sum(axis=(1, 2), keepdims=True))
        made[f"{stem}original0"] = gain.astype(np.float32)
        made[f"{stem}original1"] = tensor * uniform(f"{stem}original1", gain.shape, seed, 0.5, 2.0)
    return made


def _tensor(name: str, shape: Shape, seed: int) -> NDArray[np.float32]:
    if name.endswith(".alpha"):
        return np.exp(uniform(name, shape, seed, log(LEAST_ALPHA), log(LARGEST_ALPHA)))
    for ending, least, largest in _RANGES:
        if name.endswith(ending):
            made = uniform(name, shape, seed, least, largest)
            if name == "conv_post.bias":
                made[:BINS] += _QUIET
            return made
    bound = _gain(name) * sqrt(3.0 / _inputs(name, shape))  # the root mean square of even numbers is a third's root
    made = uniform(name, shape, seed, -bound, bound)
    if name.endswith("classifier.weight"):  # ELUs leave a mean, and pitches are to have that of the bias
        made -= made.mean(dtype=np.float64).astype(np.float32)
    return made


def _inputs(name: str, shape: Shape) -> float:
    """Inputs that an output of the layer sums."""
    if name.startswith("ups."):  # [in, out, kernel]: a column sees one tap in `rate`
        return shape[0] * shape[2] / UPSAMPLE_RATES[int(name.split(".")[1])]
    return float(prod(shape[1:]))


def _gain(name: str) -> float:
    for ending, gain in _GAINS:
        if name.endswith(ending):
            return gain
    return next((gain for part, gain in _GAINS_WITHIN if part in name), 1.0)
