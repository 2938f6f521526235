"""The language model of phonemes (PL-BERT): ALBERT, inference on one unpadded sequence.

Embeddings of 128 channels, mapped to the hidden size, then one transformer layer applied again and again with the same
weights, its norms behind the sums (ALBERT, arXiv:1909.11942, as transformers' `AlbertModel` computes it):

    x <- LN(x + dense(attention(x)));  x <- LN(x + ffn_output(gelu(ffn(x))))
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.kokoro.config import AlbertConfig
from models.kokoro.generator_weights import under
from models.kokoro.layers import Arrays, Linear, embedding, layer_norm

EPSILON = 1e-12
"""Of the layer norms: `AlbertConfig`'s default in transformers; Kokoro's `plbert` states none."""

_SHARED = "encoder.albert_layer_groups.0.albert_layers.0"
"""Where the one layer stands: ALBERT may have several groups of several, and has one of one here."""


class Albert(nn.Module):
    """`weights` under `bert.module`; the pooler among them is not used."""

    def __init__(self, weights: Arrays, config: AlbertConfig) -> None:
        super().__init__()
        self.words = embedding(under(weights, "embeddings.word_embeddings"))
        self.positions = embedding(under(weights, "embeddings.position_embeddings"))
        self.kinds = embedding(under(weights, "embeddings.token_type_embeddings"))
        self.norm = layer_norm(under(weights, "embeddings.LayerNorm"), EPSILON)
        self.widen = Linear(under(weights, "encoder.embedding_hidden_mapping_in"))
        self.layer = _Layer(under(weights, _SHARED), config.num_attention_heads)
        self.layers = config.num_hidden_layers

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens int64 [1, T], T no more than there are positions -> [1, T, hidden]."""
        positions = self.positions.weight[: tokens.shape[1]]
        # One text is one segment, whose kind is 0.
        x = self.widen(self.norm(self.words(tokens) + self.kinds.weight[0] + positions))
        for _ in range(self.layers):
            x = self.layer(x)
        hidden: Tensor = x
        return hidden


class _Layer(nn.Module):
    """Attention, then two dense layers with gelu's tanh form (`gelu_new`) between."""

    def __init__(self, weights: Arrays, heads: int) -> None:
        super().__init__()
        self.query = Linear(under(weights, "attention.query"))
        self.key = Linear(under(weights, "attention.key"))
        self.value = Linear(under(weights, "attention.value"))
        self.dense = Linear(under(weights, "attention.dense"))
        self.attention_norm = layer_norm(under(weights, "attention.LayerNorm"), EPSILON)
        self.ffn = Linear(under(weights, "ffn"))
        self.ffn_output = Linear(under(weights, "ffn_output"))
        self.norm = layer_norm(under(weights, "full_layer_layer_norm"), EPSILON)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """X [1, T, hidden] -> the same shape."""
        query, key, value = (self._by_head(part(x)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / (self.query.outs // self.heads) ** 0.5
        attended = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(1, -1, self.query.outs)
        x = self.attention_norm(x + self.dense(attended))
        widened = functional.gelu(self.ffn(x), approximate="tanh")
        out: Tensor = self.norm(x + self.ffn_output(widened))
        return out

    def _by_head(self, x: Tensor) -> Tensor:
        """[1, T, hidden] -> [1, heads, T, hidden / heads]."""
        return x.reshape(1, -1, self.heads, self.query.outs // self.heads).transpose(1, 2)
