"""The text encoder against its sums written out in numpy, position by position."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.models.inflect.sizes import SMALL, Numbers, channel_normed, convolved, drawn, model, weights
from tests.onnx_runs import snr_db

EXACT_DB = 120.0
"""What float32 keeps of such sums."""


def attended(x: Numbers, name: str) -> Numbers:
    """Attention of x [H, T], each pair of tokens on its own."""
    query, key, value = (convolved(x, f"{name}.conv_{part}") for part in "qkv")
    near = {part: weights()[f"{name}.emb_rel_{part}"][0].astype(np.float64) for part in "kv"}
    width, length = SMALL.head_channels, x.shape[1]
    out = np.zeros_like(x)
    for head in range(SMALL.n_heads):
        rows = slice(head * width, (head + 1) * width)
        for i in range(length):
            keys = [key[rows, j] + (near["k"][j - i + 4] if abs(j - i) <= 4 else 0) for j in range(length)]
            scores = np.exp([query[rows, i] @ each / np.sqrt(width) for each in keys])
            values = [value[rows, j] + (near["v"][j - i + 4] if abs(j - i) <= 4 else 0) for j in range(length)]
            out[rows, i] = sum(share * each for share, each in zip(scores / scores.sum(), values, strict=True))
    return convolved(out, f"{name}.conv_o")


def encoded(tokens: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """x [H, T] and the statistics [2 C, T]."""
    x = np.sqrt(SMALL.hidden_channels) * weights()["enc_p.emb.weight"][tokens].T.astype(np.float64)
    for layer in range(SMALL.n_layers):
        name = "enc_p.encoder.{}." + str(layer)
        x = channel_normed(x + attended(x, name.format("attn_layers")), name.format("norm_layers_1"))
        inner = np.maximum(convolved(x, name.format("ffn_layers") + ".conv_1"), 0)
        x = channel_normed(x + convolved(inner, name.format("ffn_layers") + ".conv_2"), name.format("norm_layers_2"))
    return x, convolved(x, "enc_p.proj")


@pytest.mark.parametrize("length", [1, 2, 5, 13])
def test_text_encoder_is_its_sums(length: int) -> None:
    tokens = np.random.default_rng(length).integers(0, SMALL.n_vocab, length)
    wanted, statistics = encoded(tokens)
    with torch.no_grad():
        x, mean, deviation, mask = model().enc_p(torch.from_numpy(tokens)[None], torch.tensor([length]))
    assert snr_db(wanted, x[0].numpy()) >= EXACT_DB
    assert snr_db(statistics, torch.cat([mean, deviation], dim=1)[0].numpy()) >= EXACT_DB
    assert mask.tolist() == [[[1.0] * length]]


def test_padding_changes_nothing_and_is_zero() -> None:
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, SMALL.n_vocab, (1, 9)))
    with torch.no_grad():
        padded = model().enc_p(tokens, torch.tensor([6]))
        alone = model().enc_p(tokens[:, :6], torch.tensor([6]))
    for wide, exact in zip(padded, alone, strict=True):
        assert snr_db(exact.numpy(), wide[..., :6].numpy()) >= EXACT_DB
        assert not wide[..., 6:].any()


def test_attention_of_one_head_sees_four_tokens_by_their_places() -> None:
    """Far tokens differ by what they are only: swapping two of them changes nothing for a token five away."""
    attention = model().enc_p.encoder.attn_layers[0]
    x = torch.from_numpy(drawn(1, SMALL.hidden_channels, 12))
    swapped = x[..., [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10]]
    with torch.no_grad():
        one, other = (attention(each, torch.ones(1, 1, 12, 12)) for each in (x, swapped))
    assert snr_db(one[..., :6].numpy(), other[..., :6].numpy()) >= EXACT_DB
    assert snr_db(one[..., 6:10].numpy(), other[..., 6:10].numpy()) < 60
