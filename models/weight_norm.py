"""Weight norm, folded at load: w = g v / |v|, the norm over all axes but the first (torch's `weight_norm`, dim 0).

Left in a graph it is a ReduceL2 for each convolution, on which the toolkit's build aborts (reference, Kokoro).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

_SPELLINGS = (
    (".weight_g", ".weight_v"),
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
)
"""Endings of a gain and a direction: of torch's older weight norm, and of the one that is a parametrization."""


def folded(weights: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """`weights` with `NAME.weight` in the place of a gain and a direction, in either spelling (`NAME.weight_g`, ...).

    A gain whose direction is missing, or is of other sizes, stays as it is (`unfolded`).
    A row of norm zero is zero: there torch computes 0 / 0 (quantisation zeroed 24 such rows in Kokoro's int8 export).
    """
    plain = dict(weights)
    for gain, direction in _SPELLINGS:
        for stem in [name.removesuffix(gain) for name in weights if name.endswith(gain)]:
            if stem + direction in plain and _fit(plain[stem + gain], plain[stem + direction]):
                plain[f"{stem}.weight"] = normed(plain.pop(stem + gain), plain.pop(stem + direction))
    return plain


def unfolded(weights: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """The gains and directions that `folded` left in `weights`, each with its sizes, for a sentence."""
    endings = tuple(ending for pair in _SPELLINGS for ending in pair)
    return tuple(f"{name} {list(held.shape)}" for name, held in weights.items() if name.endswith(endings))


def _fit(gain: FloatArray, direction: FloatArray) -> bool:
    return direction.ndim > 0 and gain.shape == (direction.shape[0], *(1 for _ in direction.shape[1:]))


def normed(gain: FloatArray, direction: FloatArray) -> FloatArray:
    """The weight of `gain` [R, 1, ...] and `direction` [R, ...], in double precision until the end."""
    v = direction.astype(np.float64)
    norm = np.sqrt((v * v).sum(axis=tuple(range(1, v.ndim)), keepdims=True))
    scale = np.divide(gain.astype(np.float64), norm, out=np.zeros_like(norm), where=norm > 0)
    return np.asarray(v * scale, np.float32)
