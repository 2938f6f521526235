"""Random Kokoro checkpoints whose numbers stay in a trained one's range, and the original modules that hold them."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor

from models.kokoro.config import KokoroConfig
from models.kokoro.generator_weights import under
from models.weight_norm import folded
from tests.kokoro_writer.checkpoint import Weights, random_weights

HERTZ, SWAY = 150.0, 10.0
"""The middle of the pitch, and how it is scaled around it."""

SPREAD = 8.0
"""What a duration's chances are scaled by, so that they are not all about a half."""


def tame_weights(config: KokoroConfig, seed: int = 0) -> Weights:
    """A random checkpoint: products keep their size, the pitch is a voice's, and tokens differ in their durations."""
    weights = random_weights(config, seed)
    for name, array in weights.items():
        if array.ndim > 1 and not name.endswith((".weight_g", ".weight_v")) and ".alpha" not in name:
            weights[name] = np.asarray(array / prod(array.shape[1:]) ** 0.5, np.float32)
    weights["predictor.module.F0_proj.weight"] *= np.float32(SWAY)
    weights["predictor.module.F0_proj.bias"] = np.full(1, HERTZ, np.float32)
    weights["predictor.module.duration_proj.linear_layer.weight"] *= np.float32(SPREAD)
    return weights


def part(weights: Weights, top: str) -> Weights:
    """What stands under `TOP.module`, weight norm folded."""
    return folded(under(weights, f"{top}.module"))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def snr_db(wanted: Tensor, got: Tensor) -> float:
    """Signal-to-noise ratio of `got`, in dB; inf where they are equal."""
    assert wanted.shape == got.shape
    noise = (got.double() - wanted.double()).square().sum().item()
    return float(10 * np.log10(wanted.double().square().sum().item() / noise)) if noise else float("inf")
