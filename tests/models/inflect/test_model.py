from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import Refusal
from contracts.seed import SEED
from models.inflect.model import load
from models.inflect.stand_in import stand_in
from tests.models.inflect.sizes import SMALL, drawn, model, weights


def test_load_takes_weights_in_and_out_of_weight_norm() -> None:
    one, other = (load(given, SMALL, "m.pth").state_dict() for given in (stand_in(SMALL, SEED), weights()))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_loaded_model_is_for_inference_and_takes_arrays_that_cannot_be_written_to() -> None:
    given = weights()["dp.proj.bias"].copy()
    given.flags.writeable = False
    loaded = load({**weights(), "dp.proj.bias": given}, SMALL, "m.pth")
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_load_refuses_weights_that_are_not_the_configs() -> None:
    given = {name: array for name, array in stand_in(SMALL, SEED).items() if name != "dp.proj.bias"}
    with pytest.raises(Refusal, match=r"^m\.pth: lacks 1 tensor: 'dp\.proj\.bias'; give model\.pth with"):
        load(given, SMALL, "m.pth")


def test_slower_speech_has_more_frames() -> None:
    tokens, lengths = torch.arange(1, 8)[None], torch.tensor([7])
    with torch.no_grad():
        frames = [model().prior(tokens, lengths, torch.tensor(scale))[2].shape[2] for scale in (1.0, 4.0)]
    assert 7 <= frames[0] < frames[1]


def test_masked_frames_enter_the_generator_as_zeros() -> None:
    z = torch.from_numpy(drawn(1, SMALL.inter_channels, 6))
    mask = torch.tensor([[[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]])
    with torch.no_grad():
        flowed = model().flow(z, mask)
        wanted = model().dec(torch.cat([flowed[..., :3], torch.zeros_like(flowed[..., 3:])], dim=-1))
        np.testing.assert_array_equal(model().voiced(z, mask).numpy(), wanted.numpy())
