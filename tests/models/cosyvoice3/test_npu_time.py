"""A time's embedding in an NPU's forms: the angles in double precision, and what fp16 layers leave of them."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.cosyvoice3.dit import TimeEmbedding, time_frequencies
from models.cosyvoice3.npu_time import PARTS, NpuTime, in_parts
from tests.cosyvoice3_files import SIMULATED

Sines = NDArray[np.float64]


def sines_of(time: float, rounded: bool = False) -> Sines:
    """Sines and cosines; `rounded` as an NPU has them, whose layers give fp16 numbers and sum in float32."""
    npu = NpuTime(TimeEmbedding(SIMULATED))
    t = torch.full((1, 1, 1, 1), time)

    def given(x: torch.Tensor) -> torch.Tensor:
        return x.half().float() if rounded else x

    with torch.inference_mode():
        turns = torch.floor(given(npu.turns(given(t))))
        angles = given(npu.angles(torch.cat([given(t), turns] * PARTS, dim=1)))
    sines: Sines = np.sin(angles.flatten().double().numpy())
    return sines


def wanted(time: float) -> Sines:
    exponents = np.arange(128) / 127
    angles = 1000.0 * time * 10000.0**-exponents
    return np.concatenate((np.sin(angles), np.cos(angles)))


@pytest.mark.parametrize("time", [0.0, 0.01231, 0.2929, 0.7, 0.9999, 1.0])
def test_sines_are_those_of_double_precision(time: float) -> None:
    # Two roundings of 1000 radians in float32, whose numbers there are 6.1e-5 apart.
    np.testing.assert_allclose(sines_of(time), wanted(float(np.float32(time))), atol=1.23e-4)


@pytest.mark.parametrize("time", [0.01231, 0.2929, 0.7, 1.0])
def test_a_time_that_fp16_holds_keeps_its_sines_in_fp16(time: float) -> None:
    held = float(np.float16(time))
    np.testing.assert_allclose(sines_of(held, rounded=True), wanted(held), atol=3e-3)


def test_angles_rounded_to_fp16_would_lose_them() -> None:
    angles = np.float64(np.float16(0.7)) * time_frequencies(256).numpy()
    assert np.abs(np.sin(np.float64(np.float16(angles))) - np.sin(angles)).max() > 0.1


def test_parts_are_fp16_numbers_that_sum_to_the_whole() -> None:
    whole = torch.tensor([[1000.0 / 3, -2 * pi]], dtype=torch.float64)
    parts = in_parts(whole)
    assert len(parts) == PARTS
    assert all(torch.equal(part, part.half().double()) for part in parts)
    assert torch.allclose(sum(parts), whole, rtol=1e-8, atol=0)  # type: ignore[arg-type]  # the sum of tensors is one
