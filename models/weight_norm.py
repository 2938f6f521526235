"""Weight norm, folded at load: w = g v / |v|, the norm over all axes but the first (torch's `weight_norm`, dim 0).

Left in a graph it is a ReduceL2 for each convolution, on which the toolkit's build aborts (reference, Kokoro).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

_GAIN, _DIRECTION = ".weight_g", ".weight_v"


def folded(weights: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """`weights` with `NAME.weight` in the place of `NAME.weight_g` and `NAME.weight_v`.

    A row of norm zero is zero: there torch computes 0 / 0 (quantisation zeroed 24 such rows in Kokoro's int8 export).
    """
    plain = {name: array for name, array in weights.items() if not name.endswith((_GAIN, _DIRECTION))}
    for name, gain in weights.items():
        if name.endswith(_GAIN):
            stem = name.removesuffix(_GAIN)
            plain[f"{stem}.weight"] = normed(gain, weights[stem + _DIRECTION])
    return plain


def normed(gain: FloatArray, direction: FloatArray) -> FloatArray:
    """The weight of `gain` [R, 1, ...] and `direction` [R, ...], in double precision until the end."""
    v = direction.astype(np.float64)
    norm = np.sqrt((v * v).sum(axis=tuple(range(1, v.ndim)), keepdims=True))
    scale = np.divide(gain.astype(np.float64), norm, out=np.zeros_like(norm), where=norm > 0)
    return np.asarray(v * scale, np.float32)
