from __future__ import annotations

from math import pi

import numpy as np
import pytest
import torch
from torch import Tensor

from models.stft import Stft, angle
from tests.kokoro_reference import kokoro_module
from tests.models.kokoro.checkpoints import drawn, snr_db


def as_complex(har: Tensor) -> Tensor:
    magnitude, phase = har.double().chunk(2, 1)
    return torch.view_as_real(torch.polar(magnitude, phase))


@pytest.mark.parametrize(("size", "hop"), [(20, 5), (4, 5), (8, 2)])
def test_stft_is_the_references(size: int, hop: int) -> None:
    samples = drawn(1, 12 * hop)
    magnitude, phase = kokoro_module("istftnet").TorchSTFT(size, hop, size).transform(samples)
    got = Stft(size, hop)(samples)
    assert got.shape == (1, size + 2, 13)
    assert snr_db(as_complex(torch.cat([magnitude, phase], 1)), as_complex(got)) > 120
    # Where an edge is reflected a column is real but for rounding, so between the real bins pi may be -pi there.
    edges = [0, size // 2]
    assert torch.equal(got[:, size // 2 + 1 :][:, edges], phase[:, edges])


def test_spectrum_is_torchs_in_real_and_imaginary_parts() -> None:
    samples = drawn(1, 48)
    wanted = torch.stft(samples, 16, 4, window=torch.hann_window(16), return_complex=True)
    got = Stft(16, 4).spectrum(samples)
    assert got.shape == (1, 18, 13)
    assert snr_db(torch.cat([wanted.real, wanted.imag], 1), got) > 120


def test_stft_of_a_negative_constant_has_phase_pi_where_bins_are_real() -> None:
    # Mean of the window times size: the first bin is -1/2 * 20; both edge bins are real numbers.
    got = Stft(20, 5)(torch.full((1, 50), -1.0))
    np.testing.assert_allclose(got[0, 0], 10.0, rtol=1e-6)
    assert torch.all(got[0, 11] == torch.tensor(pi))


@pytest.mark.parametrize(
    ("real", "imaginary", "wanted"),
    [
        (1.0, 0.0, 0.0),
        (1.0, 1.0, pi / 4),
        (0.0, 2.0, pi / 2),
        (-0.0, 2.0, pi / 2),
        (-1.0, 1.0, 3 * pi / 4),
        (-1.0, 0.0, pi),
        (-1.0, -0.0, pi),
        (-1.0, -1.0, -3 * pi / 4),
        (0.0, -2.0, -pi / 2),
        (-0.0, -2.0, -pi / 2),
        (1.0, -1.0, -pi / 4),
        (0.0, 0.0, 0.0),
        (1e-30, 1.0, pi / 2),
    ],
)
def test_angle_is_right_in_every_quadrant_and_on_every_axis(real: float, imaginary: float, wanted: float) -> None:
    got = angle(torch.tensor([real]), torch.tensor([imaginary])).item()
    assert got == pytest.approx(wanted, abs=1e-6)


def test_angle_is_torchs_on_random_numbers() -> None:
    numbers = drawn(2, 1000)
    wanted = torch.angle(torch.complex(numbers[0], numbers[1]))
    np.testing.assert_allclose(angle(numbers[0], numbers[1]), wanted, rtol=1e-5, atol=1e-6)
