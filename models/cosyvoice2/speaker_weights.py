"""The speaker encoder's weights with every batch normalisation folded: into the convolution before it, or to a step.

    behind a convolution:  s W,  s (b - mean) + B            s = scale / sqrt(var + epsilon)
    ahead of a Relu:       x s + (B - s mean)

In double precision until the end. Names: `NAME.weight` and, where there is one, `NAME.bias` of a convolution,
`NAME.scale` and `NAME.shift` of a normalisation that stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from models.cosyvoice2.speaker_config import NORM_EPSILON, Norm, SpeakerConfig, parts

FloatArray = NDArray[np.float32]
Wide = NDArray[np.float64]


def folded(weights: Mapping[str, FloatArray], config: SpeakerConfig) -> dict[str, FloatArray]:
    """`weights` of a checkpoint, all of `layout`, folded.

    Raises:
        ValueError: a variance is negative, so that there is no root; it is named.
    """
    made: dict[str, FloatArray] = {}
    for part in parts(config):
        if isinstance(part, Norm):
            scale, shift = _step(weights, part.name)
            made[f"{part.name}.scale"], made[f"{part.name}.shift"] = _narrow(scale), _narrow(shift)
            continue
        own = weights.get(f"{part.name}.bias") if part.bias else None
        step = None if part.norm is None else _step(weights, part.norm)
        made |= folded_conv(part.name, weights[f"{part.name}.weight"], own, step)
    return made


def folded_conv(
    name: str, weight: FloatArray, bias: FloatArray | None, step: tuple[Wide, Wide] | None
) -> dict[str, FloatArray]:
    """A convolution `name` with the affine `step` (scale, shift) behind it in its weights."""
    if step is not None:
        scale, shift = step
        wide = weight.astype(np.float64) * scale.reshape(-1, *(1,) * (weight.ndim - 1))
        weight, bias = _narrow(wide), _narrow(shift if bias is None else scale * bias + shift)
    return {f"{name}.weight": weight, **({f"{name}.bias": bias} if bias is not None else {})}


def affine_step(
    mean: FloatArray, variance: FloatArray, scale: FloatArray | None, shift: FloatArray | None, epsilon: float
) -> tuple[Wide, Wide]:
    """What a batch normalisation by constants multiplies each channel with, and adds then.

    Raises:
        ValueError: a variance is negative.
    """
    spread = variance.astype(np.float64) + epsilon
    if not np.all(spread > 0):
        raise ValueError(f"a variance is {float(variance.min()):.3g}")
    factor = (1.0 if scale is None else scale.astype(np.float64)) / np.sqrt(spread)
    return factor, (0.0 if shift is None else shift.astype(np.float64)) - factor * mean.astype(np.float64)


def _step(weights: Mapping[str, FloatArray], name: str) -> tuple[Wide, Wide]:
    mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    try:
        return affine_step(mean, variance, weights.get(f"{name}.weight"), weights.get(f"{name}.bias"), NORM_EPSILON)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _narrow(wide: Wide) -> FloatArray:
    return np.asarray(wide, np.float32)
