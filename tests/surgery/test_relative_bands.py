"""Rows that are shifted by products with zeros and ones."""

from __future__ import annotations

import numpy as np
import pytest

from surgery.relative_bands import Band, band_of
from tests.onnx_runs import Array

BANDS = [Band(5, -2, 5), Band(9, -4, 9), Band(4, -3, 7), Band(8, -2, 3), Band(8, 1, 2), Band(3, 0, 1), Band(1, 0, 1)]


def on_diagonals(band: Band, rows: Array) -> Array:
    """y[i, j] = rows[i, j - i - first], one by one."""
    made = np.zeros((band.positions, band.positions))
    for i in range(band.positions):
        for r in range(band.count):
            if 0 <= i + band.first + r < band.positions:
                made[i, i + band.first + r] = rows[i, r]
    return made


@pytest.mark.parametrize("band", BANDS)
def test_products_put_rows_on_the_diagonals_exactly(band: Band) -> None:
    rows = np.random.default_rng(2).standard_normal((band.positions, band.count))
    copies = np.tile(rows, band.residues) * band.of_residue()
    np.testing.assert_array_equal(copies @ band.at_period() * band.inside(), on_diagonals(band, rows))


@pytest.mark.parametrize("band", BANDS)
def test_transposed_products_gather_the_diagonals(band: Band) -> None:
    square = np.random.default_rng(3).standard_normal((band.positions, band.positions))
    embeddings = np.random.default_rng(4).standard_normal((2 * band.positions - 1, 3))
    got = (square * band.inside()) @ band.at_period().T * band.of_residue() @ band.rows(embeddings)
    wanted = np.zeros((band.positions, 3))
    for i in range(band.positions):
        for j in range(band.positions):
            if band.first <= j - i < band.first + band.count:
                wanted[i] += square[i, j] * embeddings[band.positions - 1 + j - i]
    np.testing.assert_allclose(got, wanted, atol=1e-12)


@pytest.mark.parametrize("band", BANDS)
def test_band_is_whole_when_it_masks_nothing(band: Band) -> None:
    assert band.is_whole == bool(band.inside().all())


@pytest.mark.parametrize(
    ("kept", "wanted"),
    [
        (range(9), Band(5, -4, 9)),
        ((3, 4, 5), Band(5, -1, 3)),
        ((2, 6), Band(5, -2, 5)),
        ((5, 6), Band(5, 1, 2)),
        ((4,), Band(5, 0, 1)),
        ((), Band(5, 0, 1)),
    ],
)
@pytest.mark.parametrize("shape", [(9, 3), (1, 9, 3), (1, 2, 9, 3)])
def test_band_holds_every_distance_that_is_not_zero(
    kept: tuple[int, ...], wanted: Band, shape: tuple[int, ...]
) -> None:
    embeddings = np.zeros(shape)
    embeddings[..., list(kept), -1] = 1
    assert band_of(embeddings) == wanted
