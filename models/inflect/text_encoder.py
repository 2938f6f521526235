"""Tokens to the prior's statistics: a transformer with relative positions, inference only.

    tokens int64 [1, T], lengths int64 [1]  ->  x [1, H, T], m and logs [1, C, T], mask [1, 1, T]

As in VITS (arXiv:2106.06103), its attention has learned embeddings of nine relative positions, -4..4, for keys and for
values (arXiv:1803.02155); farther tokens have none. Both are added by skewing a [T, 2 T - 1] matrix of all relative
positions into a [T, T] one (arXiv:1809.04281). The norms stand behind the sums.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.inflect.config import ATTENTION_WINDOW, InflectConfig
from models.inflect.layers import ChannelNorm, conv, length_mask

MASKED = -1e4
"""The score of a token that is padding; written out in VITS."""


class Attention(nn.Module):
    """Self-attention of some heads, which share the embeddings of relative positions."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        hidden = config.hidden_channels
        self.heads, self.width = config.n_heads, config.head_channels
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (conv(hidden, hidden, 1) for _ in range(4))
        positions = 2 * ATTENTION_WINDOW + 1
        self.emb_rel_k = nn.Parameter(torch.zeros(1, positions, self.width))
        self.emb_rel_v = nn.Parameter(torch.zeros(1, positions, self.width))

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        """X [1, H, T], allowed [1, 1, T, T] (0 where a token must not look) -> [1, H, T]."""
        length = x.shape[2]
        query = self._split(self.conv_q(x)) / sqrt(self.width)
        key, value = self._split(self.conv_k(x)), self._split(self.conv_v(x))
        near = query @ _all_positions(self.emb_rel_k, length).transpose(-2, -1)
        scores = query @ key.transpose(-2, -1) + _by_token(near)
        shares = functional.softmax(scores.masked_fill(allowed == 0, MASKED), dim=-1)
        mixed = shares @ value + _by_position(shares) @ _all_positions(self.emb_rel_v, length)
        out: Tensor = self.conv_o(mixed.transpose(2, 3).reshape(1, self.heads * self.width, length))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """[1, H, T] -> [1, heads, T, H / heads]."""
        return x.reshape(1, self.heads, self.width, x.shape[2]).transpose(2, 3)


def _all_positions(embedding: Tensor, length: int) -> Tensor:
    """The embeddings [1, 9, D] of -4..4 as those of all of -(T - 1)..T - 1, [1, 2 T - 1, D]: zero beyond."""
    padded = functional.pad(embedding, (0, 0, length, length))  # -(T + 4)..T + 4: enough for any T
    first = ATTENTION_WINDOW + 1
    return padded[:, first : first + 2 * length - 1]


def _by_token(x: Tensor) -> Tensor:
    """[1, heads, T, 2 T - 1] by relative position to [1, heads, T, T] by token: out[i, j] = x[i, T - 1 + j - i]."""
    _, heads, length, positions = x.shape
    rows = functional.pad(x, (0, 1)).reshape(1, heads, length * (positions + 1))
    skewed = functional.pad(rows, (0, length - 1)).reshape(1, heads, length + 1, positions)
    return skewed[:, :, :length, length - 1 :]


def _by_position(x: Tensor) -> Tensor:
    """The other way round, [1, heads, T, T] to [1, heads, T, 2 T - 1]; zero where there is no token."""
    _, heads, length, _ = x.shape
    rows = functional.pad(x, (0, length - 1)).reshape(1, heads, length * (2 * length - 1))
    return functional.pad(rows, (length, 0)).reshape(1, heads, length, 2 * length)[..., 1:]


class FeedForward(nn.Module):
    """Two convolutions around a ReLU."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.conv_1 = conv(config.hidden_channels, config.filter_channels, config.kernel_size)
        self.conv_2 = conv(config.filter_channels, config.hidden_channels, config.kernel_size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """X [1, H, T], mask [1, 1, T] -> [1, H, T]."""
        inner = torch.relu(self.conv_1(x * mask))
        out: Tensor = self.conv_2(inner * mask) * mask
        return out


class Encoder(nn.Module):
    """The transformer's layers."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        layers = range(config.n_layers)
        self.attn_layers = nn.ModuleList(Attention(config) for _ in layers)
        self.norm_layers_1 = nn.ModuleList(ChannelNorm(config.hidden_channels) for _ in layers)
        self.ffn_layers = nn.ModuleList(FeedForward(config) for _ in layers)
        self.norm_layers_2 = nn.ModuleList(ChannelNorm(config.hidden_channels) for _ in layers)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """X [1, H, T], mask [1, 1, T] -> [1, H, T]."""
        allowed = mask.unsqueeze(2) * mask.unsqueeze(-1)
        x = x * mask
        layers = (self.attn_layers, self.norm_layers_1, self.ffn_layers, self.norm_layers_2)
        for attention, norm_1, feed_forward, norm_2 in zip(*layers, strict=True):
            x = norm_1(x + attention(x, allowed))
            x = norm_2(x + feed_forward(x, mask))
        return x * mask


class TextEncoder(nn.Module):
    """The embedding, the transformer and the statistics' projection; `enc_p` of a checkpoint."""

    def __init__(self, config: InflectConfig) -> None:
        super().__init__()
        self.scale = sqrt(config.hidden_channels)
        self.sides = [config.inter_channels] * 2
        self.emb = nn.Embedding(config.n_vocab, config.hidden_channels)
        self.encoder = Encoder(config)
        self.proj = conv(config.hidden_channels, 2 * config.inter_channels, 1)

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tokens int64 [1, T], lengths int64 [1] (tokens that are no padding) -> x, m, logs, mask, as above."""
        mask = length_mask(lengths, tokens.shape[1])
        embedded = (self.emb(tokens) * self.scale).transpose(1, -1)
        x = self.encoder(embedded * mask, mask)
        mean, log_deviation = torch.split(self.proj(x) * mask, self.sides, dim=1)
        return x, mean, log_deviation, mask
