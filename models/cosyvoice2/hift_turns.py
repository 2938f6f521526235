"""The vocoder's weights with Snakes between two convolutions counted in half turns, where a sine is folded.

With t = c alpha u / pi:  u + sin^2(alpha u) / alpha = (pi / (c alpha)) (t + sin^2(pi t / c) c / pi)

c alpha / pi goes into the convolution before, its inverse into the one behind, and alpha becomes pi / c: exactly the
same function, and the step that multiplies the square by a gain is not needed (2.5 of 93.6 modelled ms of 32 frames on
rk3588). The Snake ahead of both takes a sum that is needed as it is, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[np.float32]]

LEAST_ALPHA = 0.01
"""Of a Snake whose channels are all counted so: its inverse enlarges weights, and what fp16 rounds of the sine."""

_SNAKE = ".activations2."


def in_half_turns(weights: Arrays, unit: float) -> dict[str, NDArray[np.float32]]:
    """`weights` of `models.cosyvoice2.hift_config.layout` so.

    Args:
        weights: are not changed.
        unit: c, what a half turn counts (`surgery.sine_chains.UNIT`).
    """
    made = dict(weights)
    for name, alpha in weights.items():
        if _SNAKE not in name or np.abs(alpha).min() < LEAST_ALPHA:
            continue
        block, _, place = name.removesuffix(".alpha").partition(_SNAKE)
        before, behind = f"{block}.convs1.{place}", f"{block}.convs2.{place}.weight"
        turns = alpha.astype(np.float64) * unit / pi
        made[f"{before}.weight"] = np.asarray(weights[f"{before}.weight"] * turns[:, None, None], np.float32)
        made[f"{before}.bias"] = np.asarray(weights[f"{before}.bias"] * turns, np.float32)
        made[behind] = np.asarray(weights[behind] / turns[:, None], np.float32)
        made[name] = np.full_like(alpha, pi / unit)
    return made
