"""The transformer of Qwen3's speech decoder over a whole sequence, in the reference's arithmetic.

Causal attention over a sliding window, rotary positions (arXiv:2104.09864), RMSNorm, SwiGLU and a learned scale on
each branch.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.config import DecoderConfig


class RmsNorm(nn.Module):
    """x over the root of its mean square, times a weight (arXiv:1910.07467)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.zeros(width), requires_grad=False), epsilon

    def forward(self, x: Tensor) -> Tensor:
        """X [..., C]."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


class LayerScale(nn.Module):
    """A learned factor for each channel (arXiv:2103.17239)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [..., C]."""
        return self.scale * x


def rotary_tables(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine [T, head_dim] of the angles at `positions` [T]; both halves of a head have the same."""
    exponents = torch.arange(0, head_dim, 2, dtype=positions.dtype) / head_dim
    angles = positions[:, None] / theta ** exponents[None]
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def turned(x: Tensor) -> Tensor:
    """[..., D] -> its halves swapped, what comes first negated: what the sine multiplies."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Attention(nn.Module):
    """Self-attention over the codes up to each one, at most `window` of them."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.window, self.theta = config.sliding_window, config.rope_theta
        width = config.attention_width
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, T, C]."""
        steps = torch.arange(x.shape[1], dtype=x.dtype)
        cos, sin = rotary_tables(steps, self.head_dim, self.theta)
        query, key, value = (
            layer(x).view(x.shape[1], self.heads, self.head_dim).transpose(0, 1)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = (part * cos + turned(part) * sin for part in (query, key))
        ago = steps[:, None] - steps[None]
        seen = (ago >= 0) & (ago < self.window)
        scores = (query @ key.transpose(1, 2) / sqrt(self.head_dim)).masked_fill(~seen, -torch.inf)
        mixed = torch.softmax(scores, dim=-1) @ value
        out: Tensor = self.o_proj(mixed.transpose(0, 1).reshape(1, x.shape[1], -1))
        return out


class FeedForward(nn.Module):
    """SwiGLU (arXiv:2002.05202)."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        inner = config.intermediate_size
        self.gate_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [..., C]."""
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each behind a norm, scaled and added."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(config), FeedForward(config)
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn_layer_scale, self.mlp_layer_scale = (LayerScale(config.hidden_size) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """X [1, T, C]."""
        x = x + self.self_attn_layer_scale(self.self_attn(self.input_layernorm(x)))
        out: Tensor = x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))
        return out


class Transformer(nn.Module):
    """Its layers between a projection to their width and one back."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.input_proj = nn.Linear(config.latent_dim, config.hidden_size)
        self.output_proj = nn.Linear(config.hidden_size, config.latent_dim)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, T, latent_dim]."""
        x = self.input_proj(x)
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.output_proj(self.norm(x))
        return out
