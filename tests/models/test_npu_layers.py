"""Layers in an NPU's forms against their formulas, in numpy and in double precision."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import torch

from models.npu_layers import channel_norm, convolution, gelu, pointwise


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_gelu_is_half_x_times_one_plus_erf() -> None:
    x = torch.linspace(-6, 6, 241, dtype=torch.float64)
    wanted = [each * (1 + erf(each / sqrt(2))) / 2 for each in x.tolist()]
    np.testing.assert_allclose(gelu(x).numpy(), wanted, rtol=0, atol=1e-15)


def test_pointwise_is_a_product_with_the_channels_of_each_step_and_row() -> None:
    weight, bias, x = drawn(5, 3).float(), drawn(5, seed=1).float(), drawn(2, 3, 1, 4, seed=2).float()
    wanted = np.einsum("oi,nit->not", weight.double(), x[:, :, 0].double()) + bias.double().numpy()[:, None]
    np.testing.assert_allclose(pointwise(weight, bias)(x).numpy()[:, :, 0], wanted, rtol=0, atol=1e-6)


def test_convolution_sums_taps_of_what_is_given_and_pads_nothing() -> None:
    weight, x = drawn(5, 3, 3).float(), drawn(2, 3, 1, 6, seed=2).float()
    values, taps = x.numpy()[:, :, 0], weight.numpy()
    wanted = sum(np.einsum("oi,nit->not", taps[..., tap], values[..., tap : tap + 4]) for tap in range(3))
    np.testing.assert_allclose(convolution(weight, None)(x).numpy()[:, :, 0], wanted, rtol=0, atol=1e-6)


def test_channel_norm_takes_mean_and_deviation_over_the_channels_of_each_step() -> None:
    x, weight, bias, epsilon = drawn(2, 6, 1, 4), drawn(6, seed=1), drawn(6, seed=2), 1e-3
    values = x.numpy()
    centred = values - values.mean(axis=1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)
    wanted = wanted * weight.numpy()[:, None, None] + bias.numpy()[:, None, None]
    np.testing.assert_allclose(channel_norm(x, weight, bias, epsilon).numpy(), wanted, rtol=0, atol=1e-12)
