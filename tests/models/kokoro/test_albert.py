"""ALBERT against the same arithmetic written out in numpy, in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from models.kokoro.albert import Albert
from models.kokoro.config import AlbertConfig
from models.kokoro.generator_weights import under
from tests.kokoro_writer.checkpoint import SMALL
from tests.models.kokoro.checkpoints import snr_db, tame_weights

Array = NDArray[np.float64]

CONFIG = replace(SMALL, plbert=replace(SMALL.plbert, num_attention_heads=3, num_hidden_layers=3))
TOKENS = [0, 3, 9, 3, 0]


def test_albert_is_its_arithmetic_written_out() -> None:
    weights = under(tame_weights(CONFIG), "bert.module")
    wanted = written_out({name: array.astype(np.float64) for name, array in weights.items()}, CONFIG.plbert)
    with torch.inference_mode():
        got = Albert(weights, CONFIG.plbert)(torch.tensor([TOKENS]))
    assert snr_db(torch.from_numpy(wanted[None]), got) > 120


def test_albert_norms_what_is_almost_constant_when_its_epsilon_is_small() -> None:
    # Embeddings of deviation 1e-4: an epsilon of 1e-5, torch's default, would halve them and more.
    weights = under(tame_weights(CONFIG), "bert.module")
    for part in ("word", "position", "token_type"):
        weights[f"embeddings.{part}_embeddings.weight"] *= np.float32(1e-4)
    wanted = written_out({name: array.astype(np.float64) for name, array in weights.items()}, CONFIG.plbert)
    with torch.inference_mode():
        got = Albert(weights, CONFIG.plbert)(torch.tensor([TOKENS]))
    assert snr_db(torch.from_numpy(wanted[None]), got) > 90


def written_out(w: dict[str, Array], config: AlbertConfig) -> Array:
    """[T, hidden] of `TOKENS`."""
    layer = under_layer(w)
    embedded = (
        w["embeddings.word_embeddings.weight"][TOKENS]
        + w["embeddings.position_embeddings.weight"][: len(TOKENS)]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    normed = norm(embedded, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"])
    x = dense(normed, w, "encoder.embedding_hidden_mapping_in")
    heads = config.num_attention_heads
    for _ in range(config.num_hidden_layers):
        query, key, value = (dense(x, layer, f"attention.{part}") for part in ("query", "key", "value"))
        attended = [
            softmax(q @ k.T / np.sqrt(q.shape[1])) @ v
            for q, k, v in zip(*(np.split(part, heads, 1) for part in (query, key, value)), strict=True)
        ]
        mixed = dense(np.concatenate(attended, 1), layer, "attention.dense")
        x = norm(x + mixed, layer["attention.LayerNorm.weight"], layer["attention.LayerNorm.bias"])
        wide = dense(x, layer, "ffn")
        wide = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        narrow = dense(wide, layer, "ffn_output")
        x = norm(x + narrow, layer["full_layer_layer_norm.weight"], layer["full_layer_layer_norm.bias"])
    return x


def under_layer(w: dict[str, Array]) -> dict[str, Array]:
    prefix = "encoder.albert_layer_groups.0.albert_layers.0."
    return {name.removeprefix(prefix): array for name, array in w.items() if name.startswith(prefix)}


def dense(x: Array, w: dict[str, Array], name: str) -> Array:
    return np.asarray(x @ w[f"{name}.weight"].T + w[f"{name}.bias"])


def norm(x: Array, gain: Array, bias: Array) -> Array:
    centred = x - x.mean(1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12) * gain + bias)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))
