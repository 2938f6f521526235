"""Layers of a step against their formulas, written out in numpy and in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from models.npu_layers import pointwise
from models.qwen3.layers import CausalConv
from models.qwen3.step_layers import Rotation, behind_norm, rms_normed, scaled, step_convolution
from models.qwen3.transformer import RmsNorm
from tests.models.qwen3.originals import random

EPSILON = 1e-5


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_rms_normed_is_x_over_the_root_of_its_mean_square(size: float) -> None:
    """At 1e-3 the epsilon counts: a mean square of 1e-6 beside 1e-5."""
    x = size * random(1, 24, 1, 5).double()
    values = x.numpy()[0, :, 0]
    wanted = values / np.sqrt((values**2).mean(axis=0) + EPSILON)
    np.testing.assert_allclose(rms_normed(x, EPSILON).numpy()[0, :, 0], wanted, rtol=1e-12)


def test_rms_normed_takes_no_mean_away() -> None:
    x = torch.full((1, 8, 1, 3), 2.0, dtype=torch.float64)
    np.testing.assert_allclose(rms_normed(x, 0.0).numpy(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("theta", [10_000.0, 300.0])
def test_rotation_turns_pairs_as_complex_numbers(theta: float) -> None:
    """Number i of a head and number i + D/2 are the parts of one: e^(i slot theta^(-2i / D)) times it."""
    size, slots = 12, range(7, 12)
    x = random(3, size, 1, len(slots)).double()
    values = x.numpy()[:, :, 0]
    pairs = values[:, : size // 2] + 1j * values[:, size // 2 :]
    angles = np.outer(theta ** -(np.arange(0, size, 2) / size), np.arange(7, 12))
    turned = pairs * np.exp(1j * angles)
    got = Rotation(slots, size, theta).double()(x).numpy()[:, :, 0]
    np.testing.assert_allclose(got, np.concatenate((turned.real, turned.imag), axis=1), rtol=0, atol=1e-6)


def test_rotations_products_depend_on_differences_of_slots_only() -> None:
    query, key = (random(1, 16, 1, 1, seed=seed).double() for seed in (0, 1))

    def product(at: int, other: int) -> float:
        turned = (Rotation(range(place, place + 1), 16, 1e4).double()(x) for x, place in ((query, at), (key, other)))
        one, two = turned
        return float((one * two).sum())

    assert product(90, 71) == pytest.approx(product(19, 0), abs=1e-5)
    assert product(90, 71) != pytest.approx(product(91, 71), abs=1e-2)


def linear(outs: int, ins: int, bias: bool) -> nn.Linear:
    made = nn.Linear(ins, outs, bias=bias)
    for seed, parameter in enumerate(made.parameters()):
        parameter.requires_grad_(False).copy_(random(*parameter.shape, seed=seed))
    return made


def columns(x: torch.Tensor) -> torch.Tensor:
    """[T, C] as [1, C, 1, T]."""
    return x.t()[None, :, None]


@pytest.mark.parametrize("bias", [False, True])
def test_layers_of_one_tap_are_the_linear_layers_with_what_is_folded_into_them(bias: bool) -> None:
    layer, x, scale = linear(6, 10, bias), random(5, 10, seed=3), random(6, seed=4)
    norm = RmsNorm(10, EPSILON)
    norm.weight.copy_(random(10, seed=5))
    with torch.no_grad():
        found = {
            "plain": (pointwise(layer.weight, layer.bias)(columns(x)), layer(x)),
            "scaled": (scaled(layer, scale)(columns(x)), layer(x) * scale),
            "behind": (behind_norm(layer, norm)(columns(x)), layer(x * norm.weight)),
        }
        if not bias:  # a factor is of what a layer without one gives
            found["factor"] = (behind_norm(layer, norm, 0.25)(columns(x)), layer(x * norm.weight) / 4)
    for name, (got, wanted) in found.items():
        torch.testing.assert_close(got, columns(wanted), rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize(("dilation", "groups"), [(1, 1), (3, 1), (1, 4)])
def test_step_convolution_gives_what_the_causal_one_does_behind_zeros(dilation: int, groups: int) -> None:
    layer = CausalConv(4, 8, 3, dilation=dilation, groups=groups).requires_grad_(False)
    x = random(1, 4, 20)
    behind = torch.nn.functional.pad(x, (layer.history, 0))[:, :, None]
    torch.testing.assert_close(step_convolution(layer)(behind)[:, :, 0], layer(x))
