"""Seeded random weights of a flow estimator: the true names, shapes and ranges, and nobody's voice; no torch.

What is drawn keeps every part at work and in range: each branch of the last block still adds a hundredth to the power
of its stream, and the first ones more, so that none vanishes behind the others; attention prefers some frames to others
and none alone; a time moves every channel otherwise; and no gate, shift, factor or bias is neutral or the same for all
channels. (A fresh network's gates are zero, and all its blocks come to nothing.)
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice3.config import ROTARY_BASE, DitConfig
from models.cosyvoice3.layout import BLOCK_MODULATIONS, MODULATION, OUT_MODULATION, ROTARY, Shape, layout
from models.draws import uniform

Weights = dict[str, NDArray[np.float32]]

RECIPE = 1
"""Counts what is drawn here: to be raised when a weight comes out otherwise."""

_MOVED = 0.3
"""Root mean square of what a time adds to a shift, a factor less one, or a gate."""

_GATES = (0.3, 0.8)
"""Least and largest bias of a gate."""

_GATE_PLACES = (2, 5)
"""Of a block's modulation: shift, factor and gate of the attention, then of the feed-forward (upstream)."""

_GAINS: tuple[tuple[str, float], ...] = (
    ("time_mlp.2.weight", 1.7),  # behind a SiLU
    (MODULATION, 3.0 * _MOVED),  # behind a SiLU of what is 0.6, which is a third
    (OUT_MODULATION, 3.0 * _MOVED),
    ("to_q.weight", 1.4),  # scores of about two: some frames weigh more than others, and none has all
    ("to_k.weight", 1.4),
    ("to_out.0.weight", 1.5),  # a mean over frames is smaller than they are
    ("ff.ff.2.weight", 2.2),  # behind a GELU
    ("conv2.0.weight", 1.5),  # behind a Mish
)
"""What layers whose names end so make of a root mean square of one; others keep it."""


def stand_in(config: DitConfig, seed: int) -> Weights:
    """Random weights of an estimator of these sizes, by upstream's names; the same for a seed on every machine."""
    return {name: _tensor(name, shape, config, seed) for name, shape in layout(config).items()}


def rotary(config: DitConfig) -> NDArray[np.float32]:
    """Radians a frame of each pair of channels of the first head, [head_dim / 2]: fixed, not drawn."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    return (1 / np.float32(ROTARY_BASE) ** exponents).astype(np.float32)


def _tensor(name: str, shape: Shape, config: DitConfig, seed: int) -> NDArray[np.float32]:
    if name == ROTARY:
        return rotary(config)
    if name.endswith(".bias"):
        made = uniform(name, shape, seed, -0.1, 0.1)
        if name.endswith(MODULATION.replace("weight", "bias")):
            parts = made.reshape(BLOCK_MODULATIONS, -1)
            for place in _GATE_PLACES:
                parts[place] = uniform(f"{name} {place}", parts[place].shape, seed, *_GATES)
        return made
    gain = next((gain for ending, gain in _GAINS if name.endswith(ending)), 1.0)
    bound = gain * sqrt(3.0 / prod(shape[1:]))  # the root mean square of even numbers is a third's root of their bound
    return uniform(name, shape, seed, -bound, bound)
