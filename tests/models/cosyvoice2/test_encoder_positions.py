"""The table of distances, and scores of distances without shifted rows, in numpy."""

from __future__ import annotations

from math import cos, sin

import numpy as np
import pytest
import torch

from models.cosyvoice2.encoder_positions import DistanceScores, encoded, row_groups


def test_table_has_sines_and_cosines_in_turn() -> None:
    table = encoded(torch.tensor([0, 3, -3]), 4)
    # Rates of a width of 4: 1 and 10000^(-2/4) = 1/100.
    np.testing.assert_allclose(table[0], [0, 1, 0, 1])
    np.testing.assert_allclose(table[1], [sin(3), cos(3), sin(0.03), cos(0.03)], rtol=1e-12)
    np.testing.assert_allclose(table[2], [-sin(3), cos(3), -sin(0.03), cos(0.03)], rtol=1e-12)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 7), (3, 3), (4, 11), (16, 20), (17, 20), (33, 40)])
def test_scores_are_the_products_with_each_distances_own_row(queries: int, keys: int) -> None:
    heads, depth, width = 2, 3, 8
    draw = np.random.default_rng(queries)
    linear = draw.standard_normal((heads * depth, width))
    query = draw.standard_normal((heads, queries, depth))
    wanted = np.zeros((heads, queries, keys))
    for row in range(queries):
        for column in range(keys):
            distance = keys - queries + row - column
            angles = distance / 10_000 ** (np.arange(0, width, 2) / width)
            angle = np.stack([np.sin(angles), np.cos(angles)], axis=1).reshape(-1)
            projected = (linear @ angle).reshape(heads, depth)
            wanted[:, row, column] = (query[:, row] * projected).sum(axis=1)
    scores = DistanceScores(torch.from_numpy(linear), heads, queries, keys)
    got = scores(torch.from_numpy(query).float()).numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_rows_are_shifted_by_no_kernel_wider_than_the_npus() -> None:
    for rows in (1, 16, 17, 40, 128):
        groups = list(row_groups(rows))
        assert [place for group in groups for place in range(*group)] == list(range(rows))
        assert max(stop - start for start, stop in groups) <= 31
