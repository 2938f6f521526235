from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from models.qwen3.layers import CausalConv, CausalTransposedConv, ConvNeXt, ResidualUnit, SnakeBeta, WaveBlock
from tests.models.qwen3.originals import EXACT_DB, both, random, snr
from tests.qwen3_configs import REDUCED


def filled(layer: nn.Module, seed: int = 0) -> None:
    for parameter in layer.parameters():
        parameter.requires_grad_(False).copy_(random(*parameter.shape, seed=seed))


@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (7, 1), (7, 3), (7, 9)])
def test_causal_conv_weighs_the_present_with_its_last_tap_and_earlier_steps_with_the_others(
    kernel: int, dilation: int
) -> None:
    layer = CausalConv(3, 2, kernel, dilation)
    filled(layer)
    x = random(1, 3, 70, seed=1).double()
    weight, bias = (part.double().numpy() for part in layer.conv.parameters())
    wanted = np.zeros((2, 70)) + bias[:, None]
    for now in range(70):
        for tap in range(kernel):
            ago = (kernel - 1 - tap) * dilation
            if ago <= now:
                wanted[:, now] += weight[:, :, tap] @ x[0, :, now - ago].numpy()
    assert layer.history == (kernel - 1) * dilation
    with torch.no_grad():
        np.testing.assert_allclose(layer.double()(x)[0].numpy(), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kernel", "rate", "history"), [(2, 2, 0), (16, 8, 1), (6, 3, 1), (7, 3, 2)])
def test_transposed_conv_adds_a_kernel_for_each_input_and_ends_with_the_last_input(
    kernel: int, rate: int, history: int
) -> None:
    layer = CausalTransposedConv(3, 2, kernel, rate)
    filled(layer)
    x = random(1, 3, 9, seed=1).double()
    weight, bias = (part.double().numpy() for part in layer.conv.parameters())
    wanted = np.zeros((2, 9 * rate + kernel)) + bias[:, None]
    for step in range(9):
        wanted[:, step * rate : step * rate + kernel] += np.einsum("i,iok->ok", x[0, :, step].numpy(), weight)
    assert (layer.rate, layer.history) == (rate, history)
    with torch.no_grad():
        np.testing.assert_allclose(layer.double()(x)[0].numpy(), wanted[:, : 9 * rate], rtol=1e-9, atol=1e-12)


def test_snake_beta_has_exponentials_of_both_its_parameters() -> None:
    """x + sin^2(2 x) / 4 in the first channel, x + sin^2(x / 2) / 0.5 in the other."""
    layer = SnakeBeta(2)
    layer.alpha.copy_(torch.tensor([log(2), log(0.5)]))
    layer.beta.copy_(torch.tensor([log(4), log(0.5)]))
    x = np.array([0.0, 0.3, -1.7, 40.0])
    got = layer.double()(torch.from_numpy(np.stack([x, x]))[None])[0].numpy()
    wanted = [x + np.sin(2 * x) ** 2 / 4, x + np.sin(x / 2) ** 2 / 0.5]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_snake_beta_divides_by_no_zero_where_e_to_the_beta_is_none() -> None:
    layer = SnakeBeta(1)
    layer.beta.fill_(-torch.inf)
    x = torch.tensor([[[1e-5]]], dtype=torch.float64)
    assert layer.double()(x).item() == pytest.approx(1e-5 + 1e-10 / 1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("path", "channels"),
    [
        ("pre_conv", REDUCED.codebook_dim),
        ("upsample.1.0", REDUCED.latent_dim),
        ("upsample.0.1.dwconv", REDUCED.latent_dim),
        ("upsample.0.1", REDUCED.latent_dim),
        ("decoder.0", REDUCED.latent_dim),
        ("decoder.1.block.0", 96),
        ("decoder.1.block.1", 96),
        ("decoder.2.block.3.conv1", 24),
        *[(f"decoder.2.block.{unit}", 24) for unit in (2, 3, 4)],
        ("decoder.1", 96),
        ("decoder.4", 12),
        ("decoder.5", 6),
        ("decoder.6", 6),
    ],
)
def test_a_layer_gives_what_the_references_gives(path: str, channels: int) -> None:
    x = random(1, channels, 131)
    ours, theirs = both(path)
    with torch.no_grad():
        assert snr(theirs(x), ours(x)) >= EXACT_DB


@pytest.mark.parametrize("rate", [2, 3, 7])
def test_a_wave_block_of_another_rate_gives_what_the_references_gives(rate: int) -> None:
    ours, theirs = both("decoder.2", replace(REDUCED, upsample_rates=(2, rate)))
    x = random(1, 48, 90)
    with torch.no_grad():
        assert snr(theirs(x), ours(x)) >= EXACT_DB


@pytest.mark.parametrize(
    ("layer", "channels", "history"),
    [
        (CausalConv(4, 4, 7, 9), 4, 54),
        (CausalTransposedConv(4, 2, 10, 5), 4, 1),
        (ConvNeXt(4), 4, 6),
        (ResidualUnit(4, 3), 4, 18),
        (WaveBlock(4, 4), 4, 21),  # 78 / 4, rounded up, and one for the transposed convolution
    ],
)
def test_a_layer_sees_its_history_and_nothing_later(layer: nn.Module, channels: int, history: int) -> None:
    filled(layer)
    at = 70
    x = random(1, channels, 90, seed=3).requires_grad_()
    out: Tensor = layer(x)
    rate = out.shape[-1] // x.shape[-1]
    for sample, oldest in ((at * rate, at - history), (at * rate + rate - 1, None)):
        (slope,) = torch.autograd.grad(out[..., sample].sum(), x, retain_graph=True)
        seen = slope[0].abs().sum(dim=0).nonzero()[:, 0]
        assert seen.max() == at
        assert oldest is None or seen.min() == oldest
