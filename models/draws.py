"""Seeded random numbers for weights that stand in for a checkpoint's, the same on every machine.

They come from the raw stream of PCG64, which numpy keeps the same in all versions (unlike its distributions).
"""

from __future__ import annotations

import hashlib
from math import prod

import numpy as np
from numpy.typing import NDArray


def uniform(name: str, shape: tuple[int, ...], seed: int, least: float, largest: float) -> NDArray[np.float32]:
    """Numbers evenly from `least` to `largest`, of one stream for each seed and name.

    23 bits of each make the mantissa of one from 1 to 2.
    """
    count = prod(shape)
    stream = np.random.PCG64(int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:16], "little"))
    bits = stream.random_raw((count + 1) // 2).astype("<u8", copy=False).view("<u4")[:count]
    bits >>= 9
    bits |= 0x3F800000
    made: NDArray[np.float32] = bits.view("<f4").reshape(shape)
    made -= 1.5
    made *= largest - least
    made += (largest + least) / 2
    return made
