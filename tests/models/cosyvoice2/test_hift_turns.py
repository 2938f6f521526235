"""Snakes counted in half turns: the same function, and alphas that are all alike."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from models.cosyvoice2.hift import hift_of
from models.cosyvoice2.hift_config import COLUMNS
from models.cosyvoice2.hift_runs import vocoded_and_watched
from models.cosyvoice2.hift_turns import in_half_turns
from tests.cosyvoice2_hift import SMALL, Floats, drawn, weights_of
from tests.onnx_runs import snr_db


@pytest.mark.parametrize("unit", [1.0, 2.5])
def test_half_turns_change_nothing_but_the_scale_between_convolutions(unit: float) -> None:
    turned = in_half_turns(weights_of(), unit)
    mel, har = drawn((1, SMALL.mels, 5), 1, 3.0), drawn((1, 18, 5 * COLUMNS + 1), 2, 0.2)
    owed, arguments = vocoded_and_watched(hift_of(weights_of(), SMALL), mel, har)
    got, again = vocoded_and_watched(hift_of(turned, SMALL), mel, har)
    assert snr_db(owed, got) > 110
    for one, other in zip(arguments, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)
    alphas = {name: array for name, array in turned.items() if name.endswith(".alpha")}
    for name, alpha in alphas.items():
        assert np.allclose(alpha, pi / unit) == ("activations2" in name), name


@pytest.mark.parametrize("alpha", [0.0, 0.001, -0.001])
def test_snake_with_a_channel_of_almost_no_alpha_stays(alpha: float) -> None:
    name, weights = "resblocks.0.activations2.1.alpha", dict(weights_of())
    changed: Floats = weights[name].copy()
    changed[3] = alpha
    weights[name] = changed
    turned = in_half_turns(weights, 2.0)
    for part in ("activations2.1.alpha", "convs1.1.weight", "convs1.1.bias", "convs2.1.weight"):
        np.testing.assert_array_equal(turned[f"resblocks.0.{part}"], weights[f"resblocks.0.{part}"])


def test_negative_alpha_is_the_same_function() -> None:
    name, weights = "resblocks.0.activations2.1.alpha", dict(weights_of())
    weights[name] = -weights[name]
    mel, har = drawn((1, SMALL.mels, 5), 1, 3.0), drawn((1, 18, 5 * COLUMNS + 1), 2, 0.2)
    owed, _ = vocoded_and_watched(hift_of(weights, SMALL), mel, har)
    got, _ = vocoded_and_watched(hift_of(in_half_turns(weights, 2.0), SMALL), mel, har)
    assert snr_db(owed, got) > 110
