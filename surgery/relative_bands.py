"""The constants with which products of matrices shift rows, where only a few distances count.

Of N positions and the P distances `first`, .., `first + P - 1`, the rows R [N, P] are to stand along the diagonals,
Y[i, j] = R[i, j - i - first]. Row i holds its distances from column i + first on, so that the column j of its distance
r is known from r and i modulo P alone, but for whole periods of P:

    Y = ((R repeated K times) * `of_residue`) @ `at_period` * `inside`

where K = min(P, N) copies, one for each residue of i, are masked but for that of the row, placed at every column
j = i + first + r modulo P, and masked but for the diagonals. The way back is the transposed one. All are zeros and
ones, so that each sum has one term that is not zero, and rounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Band:
    """The diagonals that count.

    Attributes:
        positions: N.
        first: the lowest distance, from -(N - 1) on.
        count: P, how many distances.
    """

    positions: int
    first: int
    count: int

    @property
    def residues(self) -> int:
        """How many residues of a position modulo `count` there are: K."""
        return min(self.count, self.positions)

    @property
    def is_whole(self) -> bool:
        """Whether it holds every distance there is."""
        return self.count == 2 * self.positions - 1

    def rows(self, embeddings: Array) -> Array:
        """Of `embeddings` [.., 2N - 1, D], one for each distance, those that count, once a residue: [.., K P, D]."""
        start = self.positions - 1 + self.first
        kept = embeddings[..., start : start + self.count, :]
        return np.concatenate([kept] * self.residues, axis=-2)

    def of_residue(self) -> Array:
        """[N, K P]: whether a row has the residue of that copy."""
        own = np.arange(self.positions)[:, None] % self.count == np.arange(self.residues)[None]
        return np.repeat(own, self.count, axis=1).astype(np.float32)

    def at_period(self) -> Array:
        """[K P, N]: whether a column is one of a row of that residue at that distance, or whole periods off."""
        residue, distance, column = np.ogrid[: self.residues, : self.count, : self.positions]
        found: Array = (column - residue - distance - self.first) % self.count == 0
        return found.reshape(-1, self.positions).astype(np.float32)

    def inside(self) -> Array:
        """[N, N]: whether the distance of that row and column counts."""
        position = np.arange(self.positions)
        distance = position[None] - position[:, None]
        found: Array = (distance >= self.first) & (distance < self.first + self.count)
        return found.astype(np.float32)


def band_of(embeddings: Array) -> Band:
    """The distances whose rows of `embeddings` [.., 2N - 1, D] are not all zero; the distance 0 where all are."""
    axes = tuple(axis for axis in range(embeddings.ndim) if axis != embeddings.ndim - 2)
    positions = (embeddings.shape[-2] + 1) // 2
    found = np.flatnonzero(embeddings.any(axis=axes)) - (positions - 1)
    if not found.size:
        return Band(positions, 0, 1)
    return Band(positions, int(found[0]), int(found[-1] - found[0]) + 1)
