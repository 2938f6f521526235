"""Where a checkpoint's weights go, and what is folded into them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.kokoro.generator import AdaIn, Snake, instance_norm
from models.kokoro.generator_weights import PREFIX, generator_weights, in_half_turns, under
from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import SMALL, random_weights
from tests.models.kokoro.checkpoints import drawn

WEIGHTS = random_weights(SMALL)
HALF = "resblocks.1.2.0"


def test_under_is_what_has_the_prefix_and_a_dot() -> None:
    ones = np.ones(1, np.float32)
    assert list(under({"a.b": ones, "ab.c": ones, "a": ones}, "a")) == ["b"]


def test_generator_weights_are_all_of_the_checkpoints_generator() -> None:
    made = generator_weights(WEIGHTS, SMALL.istftnet)
    stages, kernels, steps = 2, 2, 3
    halves = (stages * kernels + stages) * steps * 2
    # a half: four of AdaIN, alpha, weight and bias; then two upsamplings, two branches and the last convolution
    assert len(made) == 7 * halves + 2 * (stages + stages + 1)
    assert not any("weight_g" in name for name in made)


@pytest.mark.parametrize("affine", [False, True])
def test_adain_is_the_originals_with_or_without_the_norms_own_step(affine: bool) -> None:
    stem = f"{PREFIX}.resblocks.1.adain1.2"
    channels = WEIGHTS[f"{stem}.fc.weight"].shape[0] // 2
    own = {f"{stem}.norm.{what}": drawn(channels, seed=place).numpy() for place, what in enumerate(("weight", "bias"))}
    source = {**WEIGHTS, **(own if affine else {})}
    original = kokoro_module("istftnet").AdaIN1d(SMALL.style_dim, channels)
    state = {name: torch.from_numpy(array) for name, array in under(source, stem).items()}
    original.load_state_dict(state, strict=affine)
    ours = AdaIn(under(generator_weights(source, SMALL.istftnet), f"{HALF}.adain"))
    x, style = drawn(1, channels, 30), drawn(1, SMALL.style_dim, seed=9)
    with torch.no_grad():
        got = ours(instance_norm(x), style[..., None])
        torch.testing.assert_close(got, original(x, style), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_half_turns_count_the_unit(unit: float) -> None:
    """A Snake of t = unit alpha u / pi, times pi / (unit alpha), is the Snake of u; its sine is zero at every unit."""
    weights = generator_weights(WEIGHTS, SMALL.istftnet)
    turned = in_half_turns(weights, unit)
    alpha = torch.from_numpy(weights[f"{HALF}.alpha"])
    u = drawn(1, alpha.shape[1], 30)
    factor = unit * alpha / torch.pi
    with torch.no_grad():
        wanted = Snake(weights[f"{HALF}.alpha"])(u)
        torch.testing.assert_close(Snake(turned[f"{HALF}.alpha"])(factor * u) / factor, wanted, atol=1e-5, rtol=1e-5)
        whole = torch.full((1, 1, 1), 3 * unit)
        torch.testing.assert_close(Snake(turned[f"{HALF}.alpha"])(whole), whole, atol=1e-6, rtol=1e-6)
    scales = weights[f"{HALF}.adain.scale.weight"], turned[f"{HALF}.adain.scale.weight"]
    np.testing.assert_allclose(scales[1], scales[0] * factor.numpy().reshape(-1, 1), rtol=1e-6)
    kernels = weights[f"{HALF}.conv.weight"], turned[f"{HALF}.conv.weight"]
    np.testing.assert_allclose(kernels[1] * factor.numpy().reshape(1, -1, 1), kernels[0], rtol=1e-6)
