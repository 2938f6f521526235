"""Seeded random weights of an Inflect model: the true names, shapes and ranges, and nobody's voice; no torch.

What is drawn keeps every part at work and in range: signals stay of about one from layer to layer, as trained ones do,
no norm, bias or embedding is neutral or the same for all channels, tokens last one to six frames, and samples are
neither silent nor near the ends of their range. The flow is as strong as it takes for a window to need context, as
that of the release does.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.draws import uniform
from models.inflect.config import FLOW_LAYERS, InflectConfig
from models.inflect.layout import Shape, layout, normed

Weights = dict[str, NDArray[np.float32]]

RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

_RANGES: tuple[tuple[str, float, float], ...] = (
    (".gamma", 0.5, 1.5),
    (".beta", -0.1, 0.1),
    ("dp.proj.bias", 0.4, 0.5),  # a logarithm: of one frame and a half
    (".bias", -0.1, 0.1),
)
"""Least and largest number of the tensors whose names end so."""

_DEVIATION, _SPREAD = -0.5, 4.0
"""The middle of the biases of the prior's log-deviation, and by how much they are wider than others around it."""

_EMBEDDED = 0.5
"""Root mean square of the embeddings of relative positions."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("conv_q.weight", 1.4),  # scores of about two: some tokens weigh more than others, and none has all
    ("conv_k.weight", 1.4),
    ("conv_v.weight", 1.5),  # a mean over tokens is smaller than they are
    ("conv_o.weight", 1.5),
    ("enc_p.proj.weight", 0.6),
    ("dp.proj.weight", 0.5),  # most durations are within a factor of e^0.5 of each other
    (".post.weight", 0.7),  # these two: so that 24 frames of context leave 90 dB, and 32 are enough
    *((f".res_skip_layers.{layer}.weight", 2.5) for layer in range(FLOW_LAYERS)),
    ("dec.conv_post.weight", 0.4),  # the loudness
)
"""What layers whose names end so make of a root mean square of one; others keep it."""


def stand_in(config: InflectConfig, seed: int) -> Weights:
    """Random weights of a model of these sizes, as a checkpoint holds them; the same for a seed on every machine.

    Its convolutions are in weight norm where a checkpoint's are: `weights.folded` takes them.
    """
    made: Weights = {}
    within = normed(config)
    for name, shape in layout(config).items():
        tensor = _tensor(name, shape, config, seed)
        if name not in within:
            made[name] = tensor
            continue
        gain = np.sqrt(np.square(tensor, dtype=np.float64).sum(axis=(1, 2), keepdims=True))
        made[f"{name}_g"] = gain.astype(np.float32)
        made[f"{name}_v"] = tensor * uniform(f"{name}_v", gain.shape, seed, 0.5, 2.0)
    return made


def _tensor(name: str, shape: Shape, config: InflectConfig, seed: int) -> NDArray[np.float32]:
    for ending, least, largest in _RANGES:
        if name.endswith(ending):
            made = uniform(name, shape, seed, least, largest)
            if name == "enc_p.proj.bias":
                made[config.inter_channels :] = _DEVIATION + _SPREAD * made[config.inter_channels :]
            return made
    bound = sqrt(3.0) * _size(name, shape, config)  # the root mean square of even numbers is a third's root of it
    made = uniform(name, shape, seed, -bound, bound)
    if name == "dec.conv_post.weight":  # LeakyRelu leaves a mean, and sound has none
        made -= made.mean(axis=-1, keepdims=True, dtype=np.float64).astype(np.float32)
    return made


def _size(name: str, shape: Shape, config: InflectConfig) -> float:
    """Root mean square of a weight: of layers, such that it is of one where they sum numbers of one."""
    if name == "enc_p.emb.weight":
        return 1 / sqrt(config.hidden_channels)  # by whose root the encoder multiplies it
    if ".emb_rel_" in name:
        return _EMBEDDED
    inputs = float(prod(shape[1:]))
    if ".ups." in name:  # [in, out, kernel]: a sample sees one tap in `rate`
        inputs = shape[0] * shape[2] / config.upsample_rates[int(name.split(".")[2])]
    gain = next((gain for ending, gain in _GAINS if name.endswith(ending)), 1.0)
    return gain / sqrt(inputs)
