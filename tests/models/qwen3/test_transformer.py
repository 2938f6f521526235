from __future__ import annotations

from dataclasses import replace
from math import cos, exp, sin, sqrt

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.qwen3.config import DecoderConfig
from models.qwen3.transformer import Attention, LayerScale, RmsNorm, rotary_tables, turned
from tests.models.qwen3.originals import EXACT_DB, both, random, snr
from tests.qwen3_configs import REDUCED

LONGER = 100
"""Codes: more than the sliding window of 72 and less than two."""

OTHERS = [
    REDUCED,
    replace(REDUCED, sliding_window=9, num_hidden_layers=3),
    replace(REDUCED, num_attention_heads=3, num_key_value_heads=3, head_dim=10, rope_theta=300.0, rms_norm_eps=0.1),
]


def test_rms_norm_divides_by_the_root_of_the_mean_square() -> None:
    layer = RmsNorm(2, 0.5)
    layer.weight.copy_(torch.tensor([1.0, 10.0]))
    # (3^2 + 4^2) / 2 + 0.5 = 13
    np.testing.assert_allclose(layer(torch.tensor([[3.0, 4.0]])).numpy(), [[3 / sqrt(13), 40 / sqrt(13)]], rtol=1e-6)


def test_layer_scale_multiplies_each_channel() -> None:
    layer = LayerScale(2)
    layer.scale.copy_(torch.tensor([2.0, -3.0]))
    assert layer(torch.tensor([[5.0, 7.0]])).tolist() == [[10, -21]]


def test_rotary_tables_have_a_wavelength_for_each_pair_of_both_halves() -> None:
    cosine, sine = rotary_tables(torch.tensor([0.0, 3.0], dtype=torch.float64), 4, 100.0)
    assert cosine[0].tolist() == [1, 1, 1, 1]
    # Angles of position 3: 3 and 3 / sqrt(100).
    np.testing.assert_allclose(cosine[1], [cos(3), cos(0.3), cos(3), cos(0.3)])
    np.testing.assert_allclose(sine[1], [sin(3), sin(0.3), sin(3), sin(0.3)])


def test_turned_swaps_the_halves_and_negates_what_comes_first() -> None:
    assert turned(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [-3, -4, 1, 2]


@pytest.mark.parametrize("config", OTHERS)
def test_attention_gives_what_the_references_gives_beyond_its_window(config: DecoderConfig) -> None:
    x = random(1, LONGER, config.hidden_size)
    ours, theirs = both("pre_transformer.layers.0.self_attn", config)
    rotary = both("pre_transformer", config)[1].rotary_emb
    ago = torch.arange(LONGER)[:, None] - torch.arange(LONGER)[None]
    mask = torch.zeros(LONGER, LONGER).masked_fill((ago < 0) | (ago >= config.sliding_window), -torch.inf)
    with torch.no_grad():
        positions = rotary(x, torch.arange(LONGER)[None])
        wanted, _ = theirs(x, position_embeddings=positions, attention_mask=mask[None, None])
        assert snr(wanted, ours(x)) >= EXACT_DB


@pytest.mark.parametrize("config", OTHERS)
def test_the_transformer_gives_what_the_references_gives_with_its_own_mask(config: DecoderConfig) -> None:
    x = random(1, LONGER, config.latent_dim)
    ours, theirs = both("pre_transformer", config)
    with torch.no_grad():
        assert snr(theirs(inputs_embeds=x).last_hidden_state, ours(x)) >= EXACT_DB


@pytest.mark.parametrize("path", ["mlp", "input_layernorm", "post_attention_layernorm", "mlp_layer_scale"])
def test_a_part_of_a_layer_gives_what_the_references_gives(path: str) -> None:
    x = random(1, 7, REDUCED.hidden_size)
    ours, theirs = both(f"pre_transformer.layers.1.{path}")
    with torch.no_grad():
        assert snr(theirs(x), ours(x)) >= EXACT_DB


def test_attention_is_the_formula() -> None:
    config = replace(REDUCED, sliding_window=4, rope_theta=50.0)
    attention = both("pre_transformer.layers.0.self_attn", config)[0]
    x = random(1, 11, config.hidden_size)
    with torch.no_grad():
        got = attention(x)[0].numpy()
    np.testing.assert_allclose(got, by_hand(attention, x[0].double().numpy(), 4, 50.0), rtol=1e-4, atol=1e-6)


def by_hand(attention: Attention, x: NDArray[np.float64], window: int, theta: float) -> NDArray[np.float64]:
    """Attention, one query and one head after the other; a pair of numbers is turned as a complex one."""
    heads, width = attention.heads, attention.head_dim
    half = width // 2
    wavelengths = np.array([theta ** (-2 * i / width) for i in range(half)])

    def projected(layer: torch.nn.Linear) -> NDArray[np.float64]:
        return np.asarray((x @ layer.weight.double().numpy().T).reshape(len(x), heads, width))

    def complexes(parts: NDArray[np.float64]) -> NDArray[np.complex128]:
        spun = np.exp(1j * np.arange(len(x))[:, None, None] * wavelengths)
        return np.asarray((parts[..., :half] + 1j * parts[..., half:]) * spun)

    query, key = (complexes(projected(layer)) for layer in (attention.q_proj, attention.k_proj))
    value, mixed = projected(attention.v_proj), np.zeros((len(x), heads, width))
    for now in range(len(x)):
        for head in range(heads):
            seen = range(max(0, now - window + 1), now + 1)
            products = [(query[now, head] * key[other, head].conj()).sum().real for other in seen]
            weights = np.array([exp(product / sqrt(width)) for product in products])
            mixed[now, head] = weights @ value[list(seen), head] / weights.sum()
    return np.asarray(mixed.reshape(len(x), -1) @ attention.o_proj.weight.double().numpy().T)


def test_a_code_attends_to_72_codes_itself_included() -> None:
    attention = both("pre_transformer.layers.0.self_attn")[0]
    x: Tensor = random(1, LONGER, REDUCED.hidden_size).requires_grad_()
    (slope,) = torch.autograd.grad(attention(x)[0, 80].sum(), x)
    assert slope[0].abs().sum(dim=-1).nonzero()[:, 0].tolist() == list(range(80 - 71, 81))
