"""A small Inflect model, and convolutions in numpy to compute it with."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from contracts.seed import SEED
from models.inflect.config import InflectConfig
from models.inflect.model import Inflect, load
from models.inflect.stand_in import stand_in
from models.inflect.weights import folded

SMALL = InflectConfig(
    inter_channels=8,
    hidden_channels=12,
    filter_channels=16,
    upsample_initial_channel=16,
    n_heads=2,
    n_layers=2,
    upsample_rates=(4, 2),
    upsample_kernel_sizes=(8, 4),
    resblock_kernel_sizes=(3, 5),
    resblock_dilation_sizes=((1, 3), (1, 3)),
    n_vocab=20,
)

Weights = dict[str, NDArray[np.float32]]
Numbers = NDArray[np.float64]


@cache
def weights() -> Weights:
    """Folded."""
    return folded(stand_in(SMALL, SEED), "small")


@cache
def model() -> Inflect:
    return load(stand_in(SMALL, SEED), SMALL, "small")


def drawn(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Standard normal."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolved(x: Numbers, name: str, dilation: int = 1) -> Numbers:
    """X [I, T] by the convolution `name` of the small model, which keeps the length, [O, T]."""
    weight = weights()[f"{name}.weight"].astype(np.float64)
    taps = weight.shape[2]
    side = (taps - 1) * dilation // 2
    wide = np.pad(x, ((0, 0), (side, side)))
    out = sum(weight[:, :, k] @ wide[:, k * dilation : k * dilation + x.shape[1]] for k in range(taps))
    bias = weights().get(f"{name}.bias", np.zeros(weight.shape[0], np.float32))
    return np.asarray(out + bias[:, None], np.float64)


def channel_normed(x: Numbers, name: str) -> Numbers:
    """X [C, T] by the layer norm `name` of the small model."""
    centred = x - x.mean(axis=0)
    unit = centred / np.sqrt((centred**2).mean(axis=0) + 1e-5)
    return np.asarray(unit * weights()[f"{name}.gamma"][:, None] + weights()[f"{name}.beta"][:, None])


def leaky(x: Numbers, slope: float) -> Numbers:
    return np.where(x > 0, x, slope * x)
