"""Weights that stand in for the vocoder's."""

from __future__ import annotations

import numpy as np
import torch

from models.cosyvoice2.f0 import pitch_of
from models.cosyvoice2.hift import ResidualBlock, hift_of
from models.cosyvoice2.hift_config import HOP, HiftConfig
from models.cosyvoice2.hift_stand_in import stand_in
from models.weight_norm import folded
from tests.cosyvoice2_hift import SMALL, drawn, original, raw_weights

WIDER = HiftConfig(mels=40, channels=64, pitch_channels=64)


def test_names_and_shapes_are_a_checkpoints() -> None:
    owed = {name: tuple(tensor.shape) for name, tensor in original().state_dict().items()}
    assert {name: array.shape for name, array in raw_weights().items()} == owed
    assert all(array.dtype == np.float32 for array in raw_weights().values())


def test_a_seed_gives_the_same_and_another_does_not() -> None:
    again, other = stand_in(SMALL, 0), stand_in(SMALL, 1)
    assert all(np.array_equal(array, again[name]) for name, array in raw_weights().items())
    assert not any(np.array_equal(array, other[name]) for name, array in raw_weights().items())


def test_alphas_are_of_two_orders_of_magnitude_and_no_two_alike() -> None:
    alphas = np.concatenate([array for name, array in raw_weights().items() if name.endswith(".alpha")])
    assert 0.1 <= alphas.min() < 0.15
    assert 1.5 < alphas.max() <= 2
    assert len(np.unique(alphas)) > 0.99 * alphas.size


def test_signals_stay_of_about_one_and_samples_are_neither_silent_nor_clipped() -> None:
    weights = folded(stand_in(WIDER, 0))
    hift, sizes = hift_of(weights, WIDER), []
    for module in hift.modules():
        if isinstance(module, ResidualBlock):
            module.register_forward_hook(lambda _, given, made: sizes.append((given[0].std(), made.std())))
    mel = torch.from_numpy(np.clip(drawn((1, 40, 20), 1, 3.0) - 5, -11.5, 2.0))
    source = torch.from_numpy(drawn((1, HOP * 20), 2, 0.1))
    spectrum = torch.stft(source, 16, 4, window=torch.hann_window(16), return_complex=True)
    made = hift(mel, torch.cat([spectrum.real, spectrum.imag], 1))
    assert all(0.3 < before < 3 and 0.3 < behind < 3 for before, behind in sizes)
    assert -4 < made[:, :9].mean() < -2
    assert 0.3 < made[:, :9].std() < 2
    assert 0.2 < made[:, 9:].std() < 2
    pitch = pitch_of(weights, WIDER)(mel)
    assert 60 < pitch.mean() < 500
    assert pitch.std() > 10
