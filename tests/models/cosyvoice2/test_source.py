"""The host half against the original, run in double precision: in single precision its phases are noise."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from models.cosyvoice2.hift_config import HOP
from models.cosyvoice2.source import Excitation
from tests.cosyvoice2_hift import SMALL, Floats, drawn, original, weights_of
from tests.onnx_runs import snr_db

PITCH = np.array([[0.0, 95.0, 180.0, 180.0, 9.9, 240.0, 350.0, 2700.0]], np.float32)
FRAMES = PITCH.shape[1]
NOTHING, START = np.zeros((1, 0), np.float32), np.zeros((1, 9), np.float32)


def original_source(noise: Floats) -> Tensor:
    """[1, 480 N] in double precision, with `noise` for its draws."""
    samples = nn.Upsample(scale_factor=HOP)(torch.from_numpy(PITCH).double()[:, None]).transpose(1, 2)
    drawn_here = torch.from_numpy(noise).double()
    with patch.object(torch, "randn_like", lambda like: drawn_here if like.shape == drawn_here.shape else like):
        found: Tensor = original().m_source.double()(samples)[0]
    return found.squeeze(-1)


def excited(*given: Floats) -> tuple[Tensor, ...]:
    with torch.inference_mode():
        out: tuple[Tensor, ...] = Excitation(weights_of(SMALL))(*map(torch.from_numpy, given))
    return out


def test_source_and_its_spectrum_are_the_originals() -> None:
    noise = drawn((1, HOP * FRAMES, 9), 1)
    har, source, turns = excited(PITCH, noise, START, NOTHING)
    owed = original_source(noise)
    spectrum = torch.stft(owed, 16, 4, window=torch.hann_window(16).double(), return_complex=True)
    assert snr_db(owed.numpy(), source.numpy()) > 100
    assert snr_db(torch.cat([spectrum.real, spectrum.imag], 1).numpy(), har.numpy()) > 100
    assert turns.shape == (1, FRAMES, 9)


def test_samples_that_are_known_take_the_place_of_the_first() -> None:
    noise, known = drawn((1, HOP * FRAMES, 9), 1), drawn((1, 700), 2)
    _, source, _ = excited(PITCH, noise, START, known)
    _, own, _ = excited(PITCH, noise, START, NOTHING)
    np.testing.assert_array_equal(source[:, :700], known)
    np.testing.assert_array_equal(source[:, 700:], own[:, 700:])


def test_source_goes_on_where_another_window_was() -> None:
    noise, start = drawn((1, HOP * FRAMES, 9), 1), 3
    _, whole, turns = excited(PITCH, noise, START, NOTHING)
    _, later, _ = excited(PITCH[:, start:], noise[:, HOP * start :], turns[:, start - 1].numpy(), NOTHING)
    # The first half of its first frame lies behind a middle that it has not.
    assert snr_db(whole[:, HOP * start + HOP // 2 :].numpy(), later[:, HOP // 2 :].numpy()) > 90
