"""Weight norm, folded."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from models.weight_norm import folded, normed


def test_normed_is_torchs_weight_norm() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: it has a successor
        layer: Any = nn.utils.weight_norm(nn.ConvTranspose1d(5, 4, 3))
    layer.weight_g.data.uniform_(0.5, 2.0)
    layer(torch.zeros(1, 5, 2))
    got = normed(layer.weight_g.detach().numpy(), layer.weight_v.detach().numpy())
    np.testing.assert_allclose(got, layer.weight.detach().numpy(), rtol=1e-6)


def test_row_is_zero_when_its_norm_is() -> None:
    direction = np.array([[[3.0], [4.0]], [[0.0], [0.0]]], np.float32)
    gain = np.array([[[10.0]], [[7.0]]], np.float32)
    assert normed(gain, direction).tolist() == [[[6.0], [8.0]], [[0.0], [0.0]]]


def test_folded_has_plain_weights_and_leaves_the_rest() -> None:
    ones = np.ones((1, 1, 1), np.float32)
    given = {"a.weight_g": 2 * ones, "a.weight_v": 5 * ones, "a.bias": ones, "fc.weight": 3 * ones}
    made = folded(given)
    assert {name: float(array.item()) for name, array in made.items()} == {"a.bias": 1, "fc.weight": 3, "a.weight": 2}


def test_folded_takes_torchs_parametrization_too() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(5, 4, 3))
    layer.parametrizations.weight.original0.data.uniform_(0.5, 2.0)
    made = folded({f"a.{name}": array.numpy() for name, array in layer.state_dict().items()})
    assert sorted(made) == ["a.bias", "a.weight"]
    np.testing.assert_allclose(made["a.weight"], layer.weight.detach().numpy(), rtol=1e-6)


def test_gain_stays_where_its_direction_is_missing() -> None:
    ones = np.ones((1, 1, 1), np.float32)
    assert list(folded({"a.weight_g": ones})) == ["a.weight_g"]
