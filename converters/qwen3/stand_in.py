"""Seeded random weights of a Qwen3 speech decoder: the true names, shapes and ranges, and nobody's voice.

What is drawn keeps every part of the decoder at work and in range: signals stay of about one from layer to layer, as
trained ones do, attention looks at some codes more than at others, no gain, scale, bias, alpha or beta is neutral or
the same for all channels, so that nothing can be optimised away, and few samples are clipped.

Numbers come from one stream for each seed and name (`models.draws`): a tensor is the same whatever else is drawn.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from contracts.contract import Source
from contracts.files import sha256_of_bytes
from converters.qwen3.layout import PREFIX, Shape, layout
from models.draws import uniform
from models.qwen3.config import DecoderConfig

RANDOM = "random"
"""The word that stands for the published sizes with such weights, in the place of a checkpoint."""

Weights = dict[str, NDArray[np.float32]]

_RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("alpha", -0.5, 0.5),  # logarithms: of 0.6 to 1.6
    ("beta", -0.5, 0.5),
    ("gamma", 0.05, 0.4),  # a branch adds less than a tenth to the power of its stream
    ("scale", 0.05, 0.4),
    ("norm.weight", 0.5, 1.5),
    ("layernorm.weight", 0.5, 1.5),
    ("bias", -0.1, 0.1),  # of a tenth of what it is added to
    ("cluster_usage", 0.5, 1.5),
)
"""Least and largest number of the tensors whose names end so."""

_RESIDUAL = 0.4
"""Root of the power that a residual unit adds to its stream's, of about one."""

_SNAKE, _STREAM = 1.2, 1.35
"""Root mean square behind a Snake of a signal of one, and behind the Snake of a sum of residual units; measured."""

_LOUDNESS = 0.3
"""Root of the audio's power, at most: three times that is below the clipping at one."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("rvq_first.output_proj.weight", sqrt(0.5)),  # the sum of both is of one
    ("rvq_rest.output_proj.weight", sqrt(0.5)),
    ("q_proj.weight", 1.4),  # scores of about two: some codes weigh more than others, and none has all
    ("k_proj.weight", 1.4),
    ("v_proj.weight", 1.5),  # a mean over codes is smaller than they are
    ("o_proj.weight", 1.5),
    ("gate_proj.weight", 1.2),
    ("up_proj.weight", 1.2),
    ("down_proj.weight", 1.5),  # SiLU makes smaller, and GELU
    ("pwconv2.weight", 1.5),
    ("conv1.conv.weight", 1 / _STREAM),
    ("conv2.conv.weight", _RESIDUAL / _SNAKE),
)
"""What layers whose names end so make of a root mean square of one; others keep it."""

_USAGE_FLOOR = 1e-5
"""Least usage that an entry's sum is divided by, as in the reference."""


def stand_in(config: DecoderConfig, seed: int) -> Weights:
    """Random weights of a decoder of these sizes, under a checkpoint's names; the same for a seed on every machine.

    Of each codebook, the first entry is used less than the floor that the reference divides by at least.
    """
    return {name: _tensor(name, shape, config, seed) for name, shape in layout(config).items()}


def stand_in_source(config: DecoderConfig, seed: int) -> Source:
    """Where such weights come from; the digest is that of their description."""
    description = f"qwen3 speech_decoder, stand-in {_RECIPE}, seed {seed}, {config}"
    return Source(RANDOM, sha256_of_bytes(description.encode()), RANDOM)


def _tensor(name: str, shape: Shape, config: DecoderConfig, seed: int) -> NDArray[np.float32]:
    for ending, least, largest in _RANGES:
        if name.endswith(ending):
            made = uniform(name, shape, seed, least, largest)
            if ending == "cluster_usage":
                made[0] = 0.0
            return made
    if name.endswith("embedding_sum"):
        usage = _tensor(name.replace("embedding_sum", "cluster_usage"), shape[:1], config, seed)
        bound = sqrt(3.0) * _entry_size(name, config)
        made = uniform(name, shape, seed, -bound, bound)
        made *= np.maximum(usage, np.float32(_USAGE_FLOOR))[:, None]
        return made
    bound = _gain(name, config) * sqrt(3.0 / _inputs(name, shape, config))
    made = uniform(name, shape, seed, -bound, bound)
    if name == _last(config):  # the Snakes' squares have a mean, and sound has none
        made -= (made.astype(np.float64).sum(axis=-1, keepdims=True) / shape[-1]).astype(np.float32)
    return made


def _entry_size(name: str, config: DecoderConfig) -> float:
    """Root mean square of a codebook's entries: smaller from one to the next, which codes what was left over.

    Those of all acoustic codebooks, or of all semantic ones, have a sum of one.
    """
    place = int(name.partition("vq.layers.")[2].partition(".")[0])
    codebooks = config.n_q_semantic if "rvq_first" in name else config.n_q_acoustic
    return sqrt(1 / (place + 1) / sum(1 / (each + 1) for each in range(codebooks)))


def _inputs(name: str, shape: Shape, config: DecoderConfig) -> int:
    """Inputs that an output of the layer sums."""
    if name.startswith(f"{PREFIX}upsample.") and name.endswith(".0.conv.weight"):
        return shape[0]  # [in, out, stride]
    if name.startswith(f"{PREFIX}decoder.") and name.endswith(".block.1.conv.weight"):
        return 2 * shape[0]  # [in, out, 2 strides]
    return prod(shape[1:])


def _gain(name: str, config: DecoderConfig) -> float:
    for ending, gain in _GAINS:
        if name.endswith(ending):
            return gain
    if name.endswith(".block.1.conv.weight"):
        return 1 / (_SNAKE if name == f"{PREFIX}decoder.1.block.1.conv.weight" else _STREAM)
    if name == _last(config):
        return _LOUDNESS / _STREAM
    return 1.0


def _last(config: DecoderConfig) -> str:
    """The weight of the convolution that makes the samples."""
    return f"{PREFIX}decoder.{len(config.upsample_rates) + 2}.conv.weight"
