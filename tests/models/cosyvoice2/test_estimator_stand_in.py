"""The stand-in's weights: the same everywhere, none neutral, and every part of the estimator at work."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from models.cosyvoice2.estimator import velocity
from models.cosyvoice2.estimator_config import layout
from models.cosyvoice2.estimator_stand_in import stand_in
from tests.cosyvoice2_estimator import SMALL, Floats, drawn, tensors, weights_of
from tests.onnx_runs import snr_db


def test_names_and_shapes_are_a_checkpoints() -> None:
    assert {name: array.shape for name, array in weights_of().items()} == layout(SMALL)


def test_weights_are_the_same_on_every_machine() -> None:
    digest = hashlib.sha256(stand_in(SMALL, 0)["mid_blocks.0.1.0.attn1.to_q.weight"].tobytes()).hexdigest()
    assert digest[:16] == "5f267d8738785255"


def test_nothing_is_neutral() -> None:
    for name, array in weights_of().items():
        assert array.std() > 0.01, name
        assert 0 < np.abs(array).max() < 2, name


def made(weights: dict[str, torch.Tensor]) -> Floats:
    stream = drawn(24)
    arrays = (stream.x, np.ones((2, 1, 24), np.float32), stream.mu, stream.t, stream.spks, stream.cond)
    x, mask, mu, t, spks, cond = map(torch.from_numpy, arrays)
    with torch.no_grad():
        out: Floats = velocity(weights, SMALL, x, mask, mu, t, spks, cond).numpy()
    return out


@pytest.mark.parametrize(
    "silenced",
    ["mlp.1.weight", "to_out.0.weight", "to_q.weight", "ff.net.2.weight", "res_conv.weight", "block2.block.0"],
)
def test_every_part_is_heard(silenced: str) -> None:
    weights = {name: torch.zeros_like(t) if silenced in name and t.ndim > 1 else t for name, t in tensors().items()}
    assert snr_db(made(tensors()), made(weights)) < 25


def test_velocity_is_of_about_one() -> None:
    assert 0.5 < float(np.sqrt(np.mean(np.square(made(tensors()))))) < 2
