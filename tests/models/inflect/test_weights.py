from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from contracts.errors import Refusal
from contracts.seed import SEED
from models.inflect.stand_in import stand_in
from models.inflect.weights import checked, folded
from tests.models.inflect.sizes import SMALL, drawn, weights

STEM = "dec.ups.0"
WEIGHT = f"{STEM}.weight"


def test_folded_is_torchs_weight_norm_by_its_old_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: it has a successor
        layer: Any = nn.utils.weight_norm(nn.ConvTranspose1d(5, 4, 3))
    layer.weight_g.data.uniform_(0.5, 2.0)
    layer(torch.zeros(1, 5, 2))
    made = folded({f"a.{name}": tensor.detach().numpy() for name, tensor in layer.state_dict().items()}, "m.pth")
    assert made.keys() == {"a.bias", "a.weight"}
    np.testing.assert_allclose(made["a.weight"], layer.weight.detach().numpy(), rtol=1e-6)


def test_folded_is_torchs_weight_norm_by_its_new_names() -> None:
    layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(5, 4, 3))
    layer.parametrizations.weight.original0.data.uniform_(0.5, 2.0)
    made = folded({f"a.{name}": tensor.detach().numpy() for name, tensor in layer.state_dict().items()}, "m.pth")
    assert made.keys() == {"a.bias", "a.weight"}
    np.testing.assert_allclose(made["a.weight"], layer.weight.detach().numpy(), rtol=1e-6)


def test_folded_row_is_zero_when_its_norm_is() -> None:
    direction = np.array([[[3.0], [4.0]], [[0.0], [0.0]]], np.float32)
    made = folded({"a.weight_g": np.array([[[10.0]], [[7.0]]], np.float32), "a.weight_v": direction}, "m.pth")
    assert made["a.weight"].tolist() == [[[6.0], [8.0]], [[0.0], [0.0]]]


def test_folded_leaves_out_what_only_training_needs() -> None:
    assert folded({"enc_q.pre.weight": drawn(2, 2, 1), "enc_q.enc.in_layers.0.weight_g": drawn(2, 1, 1)}, "m.pth") == {}


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (
            {"a.weight_g": (2, 1, 1)},
            "'a.weight_g' is half of a weight norm, and its other half 'a.weight_v' is missing",
        ),
        ({"a.weight_v": (2, 3, 1)}, "its other half 'a.weight_g' is missing"),
        ({"a.weight_g": (3, 1, 1), "a.weight_v": (2, 3, 1)}, "weight norm of 'a' has 3 gains for 2 rows"),
        ({"a.weight_g": (2, 1, 1), "a.weight_v": (2, 3, 1), "a.weight": (2, 3, 1)}, "a weight norm beside it"),
    ],
)
def test_folded_refuses_halves_that_do_not_fit(given: dict[str, tuple[int, ...]], part: str) -> None:
    with pytest.raises(Refusal, match=rf"^m\.pth: .*{re.escape(part)}.*\.$"):
        folded({name: drawn(*shape) for name, shape in given.items()}, "m.pth")


def test_checked_takes_a_stand_in() -> None:
    made = checked(folded(stand_in(SMALL, SEED), "m.pth"), SMALL, "m.pth")
    assert made.keys() == weights().keys()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({WEIGHT: None}, f"lacks 1 tensor: '{WEIGHT}'; give model.pth with the config.json"),
        (
            {f"dec.ups.{i}.{part}": None for i in (0, 1) for part in ("bias", "weight")},
            "lacks 4 tensors: 'dec.ups.0.bi",
        ),
        ({"emb_g.weight": drawn(2, 3)}, "has what no Inflect model has, 1 tensor: 'emb_g.weight'"),
        ({WEIGHT: drawn(16, 8, 9)}, f"the tensor '{WEIGHT}' is (16, 8, 9), and by the config (16, 8, 8)"),
        ({WEIGHT: np.full((16, 8, 8), np.nan, np.float32)}, f"the tensor '{WEIGHT}' holds numbers that are not finite"),
    ],
)
def test_checked_refuses_another_models_weights(change: dict[str, Any], part: str) -> None:
    given = {name: array for name, array in {**weights(), **change}.items() if array is not None}
    with pytest.raises(Refusal, match=rf"^m\.pth: .*{re.escape(part)}.*\.$"):
        checked(given, SMALL, "m.pth")
