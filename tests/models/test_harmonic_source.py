"""The harmonic source against the reference's, run in double precision: in single precision its phases are noise."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.harmonic_source import Source, phases, turned
from tests.kokoro_reference import kokoro_module
from tests.models.kokoro.checkpoints import drawn, snr_db

HOP, HARMONICS = 300, 9
PITCHES = [0.0, -4.0, 95.0, 180.0, 180.0, 9.9, 240.0, 350.0, 120.0, 2700.0]
"""With no voice at the beginning and amid, and one whose ninth harmonic turns more than once a sample."""


def weights() -> dict[str, NDArray[np.float32]]:
    return {"l_linear.weight": drawn(1, HARMONICS, seed=1).numpy(), "l_linear.bias": drawn(1, seed=2).numpy()}


def source() -> Source:
    return Source(weights()["l_linear.weight"], weights()["l_linear.bias"], HOP)


def reference_source(pitch: Tensor, noise: Tensor, phase_draw: float = 0.3) -> Tensor:
    """[1, hop N] in double precision, with `noise` for its draws and `phase_draw` for each harmonic's."""
    module = kokoro_module("istftnet").SourceModuleHnNSF(24000, HOP, HARMONICS - 1, voiced_threshod=10).double()
    module.load_state_dict({name: torch.from_numpy(array) for name, array in weights().items()})
    samples = nn.Upsample(scale_factor=HOP)(pitch.double()[:, None]).transpose(1, 2)
    with (
        patch.object(torch, "randn_like", lambda like: noise.to(like) if like.shape == noise.shape else like),
        patch.object(torch, "rand", lambda *shape, device: torch.full(shape, phase_draw)),
        torch.inference_mode(),
    ):
        out: Tensor = module(samples)[0]
    return out.squeeze(-1)


@pytest.mark.parametrize("loudness", [0.0, 1.0])
def test_source_is_the_references(loudness: float) -> None:
    pitch = torch.tensor([PITCHES])
    noise = loudness * drawn(1, HOP * len(PITCHES), HARMONICS)
    got = source()(pitch, noise)
    assert snr_db(reference_source(pitch, noise), got) > 105


def test_source_stays_the_references_when_an_utterance_is_long() -> None:
    # In single precision the reference itself is at 30 dB here.
    pitch = 150 + 50 * torch.sin(torch.arange(2000.0) / 40)[None]
    noise = torch.zeros(1, HOP * 2000, HARMONICS)
    assert snr_db(reference_source(pitch, noise), source()(pitch, noise)) > 105


def test_references_draw_of_phases_never_arrives() -> None:
    pitch, noise = torch.tensor([PITCHES]), torch.zeros(1, HOP * len(PITCHES), HARMONICS)
    assert torch.equal(reference_source(pitch, noise, 0.0), reference_source(pitch, noise, 0.9))


def test_source_cuts_noise_that_is_longer_than_needed() -> None:
    pitch, noise = torch.tensor([PITCHES]), drawn(1, HOP * len(PITCHES) + 50, HARMONICS)
    assert torch.equal(source()(pitch, noise), source()(pitch, noise[:, :-50]))


def test_phases_are_straight_lines_between_the_middles_of_frames() -> None:
    # Two frames of 4 samples at 3000 and 6000 Hz: 1/8 and 1/4 turns a sample; middles at 0.5 and 1.5 (whole turns go).
    got = phases(torch.tensor([[3000.0, 6000.0]]), 1, 4)[0, ..., 0]
    assert got.tolist() == [[0.5, 0.5, 0.625, 0.875], [0.125, 0.375, 0.5, 0.5]]


def test_phases_go_on_from_what_was_turned_before() -> None:
    pitch = torch.tensor([PITCHES])
    whole = turned(pitch, HARMONICS, HOP)
    later = turned(pitch[:, 4:], HARMONICS, HOP, whole[:, 3])
    ahead = (later - whole[:, 4:] + 0.5) % 1 - 0.5  # on a circle
    assert ahead.abs().max() < 1e-6
