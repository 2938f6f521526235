"""VITS's text encoder in numpy and double precision, from its definition: no padding, folding or slicing of offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tests.vits_writer.attention import WINDOW

Array = NDArray[np.float64]


class Weights:
    """The weights of a voice by name, in double precision."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._by_name = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}

    def __call__(self, name: str) -> Array:
        weight: Array = self._by_name[name].astype(np.float64)
        return weight


def features(weights: Weights, ids: NDArray[Any], heads: int, layers: int) -> Array:
    """What the encoder makes [hidden, T] of `ids` [T], none of which is padding."""
    table = weights("enc_p.emb.weight")
    x: Array = table[ids].T * np.sqrt(table.shape[1])
    for layer in range(layers):
        at = f"enc_p.encoder.attn_layers.{layer}"
        x = layer_norm(weights, f"enc_p.encoder.norm_layers_1.{layer}", x + attention(weights, at, x, heads))
        at = f"enc_p.encoder.ffn_layers.{layer}"
        wide = np.maximum(conv(weights, f"{at}.conv_1", x), 0)
        x = layer_norm(weights, f"enc_p.encoder.norm_layers_2.{layer}", x + conv(weights, f"{at}.conv_2", wide))
    return x


def statistics(weights: Weights, ids: NDArray[Any], heads: int, layers: int) -> Array:
    """Mean and log spread [2 C, T] of `ids` [T], none of which is padding."""
    return conv(weights, "enc_p.proj", features(weights, ids, heads, layers))


def attention(weights: Weights, at: str, x: Array, heads: int) -> Array:
    """Self-attention where position j counts for i with a key and a value of its own for the offset j - i, up to 4."""
    count = x.shape[1]
    query, key, value = (conv(weights, f"{at}.conv_{kind}", x).reshape(heads, -1, count) for kind in "qkv")
    keys, values = (weights(f"{at}.emb_rel_{kind}")[0] for kind in "kv")
    width = query.shape[1]
    out = np.zeros_like(query)
    for head in range(heads):
        for i in range(count):
            near = range(max(0, i - WINDOW), min(count, i + WINDOW + 1))
            logits = key[head].T @ query[head, :, i]
            for j in near:
                logits[j] += keys[j - i + WINDOW] @ query[head, :, i]
            share = np.exp((logits - logits.max()) / np.sqrt(width))
            share /= share.sum()
            out[head, :, i] = value[head] @ share
            for j in near:
                out[head, :, i] += share[j] * values[j - i + WINDOW]
    return conv(weights, f"{at}.conv_o", out.reshape(-1, count))


def conv(weights: Weights, name: str, x: Array) -> Array:
    """A convolution that keeps the length of x [C, T]."""
    kernel, bias = weights(f"{name}.weight"), weights(f"{name}.bias")
    taps, count = kernel.shape[2], x.shape[1]
    padded = np.pad(x, ((0, 0), (taps // 2, taps // 2)))
    out = np.repeat(bias[:, None], count, axis=1)
    for tap in range(taps):
        out += kernel[:, :, tap] @ padded[:, tap : tap + count]
    return out


def layer_norm(weights: Weights, name: str, x: Array) -> Array:
    """Each column of x [C, T] to mean 0 and deviation 1, then scaled and shifted."""
    centred = x - x.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).mean(axis=0) + 1e-5)
    normed: Array = scaled * weights(f"{name}.gamma")[:, None] + weights(f"{name}.beta")[:, None]
    return normed
