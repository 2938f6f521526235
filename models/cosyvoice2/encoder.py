"""CosyVoice2's flow encoder in the original's arithmetic: embeddings of speech tokens to the mean of the mel frames.

An upsampling conformer without convolution modules: a look-ahead convolution, blocks of relative attention and feed
forward layers, an upsampling by two, more blocks (upstream, `cosyvoice.transformer.upsample_encoder`). Modules and
their tensors are named as in a checkpoint. It computes a whole stream at once; attention sees whole chunks, as a stream
of steps does: `models.cosyvoice2.encoder_step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.encoder_config import BEHIND, ENCODER, PROJECTION, UP_BEHIND, UPSAMPLING, EncoderConfig
from models.cosyvoice2.encoder_positions import encoded

BLOCK_EPSILON, EPSILON = 1e-12, 1e-5
"""Of the norms inside a block, and of all others (upstream)."""


class Embedding(nn.Module):
    """Linear, norm, and the factor of a signal that positions were once added to: the root of its width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width, EPSILON))

    def forward(self, x: Tensor) -> Tensor:
        """X [1, N, C]."""
        out: Tensor = self.out(x)
        return out * sqrt(x.shape[-1])


class LookAhead(nn.Module):
    """A convolution over the tokens ahead, and a causal one, added to the signal."""

    def __init__(self, width: int, ahead: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, ahead + 1)
        self.conv2 = nn.Conv1d(width, width, BEHIND + 1)

    def forward(self, x: Tensor, chunks: Sequence[tuple[int, int, int]]) -> Tensor:
        """X [1, N, C]; of each chunk its start, its end and how many tokens behind it are seen."""
        signal, ahead = x.transpose(1, 2), self.conv1.kernel_size[0] - 1
        parts = []
        for start, stop, seen in chunks:
            part = signal[..., start : stop + seen]
            parts.append(self.conv1(functional.pad(part, (0, ahead + stop - start - part.shape[-1]))))
        joined = functional.leaky_relu(torch.cat(parts, dim=-1))
        out: Tensor = x + self.conv2(functional.pad(joined, (BEHIND, 0))).transpose(1, 2)
        return out


class Attention(nn.Module):
    """Attention whose scores have a term of the distance, as a sinusoidal table encodes it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.linear_q, self.linear_k = nn.Linear(width, width), nn.Linear(width, width)
        self.linear_v, self.linear_out = nn.Linear(width, width), nn.Linear(width, width)
        self.linear_pos = nn.Linear(width, width, bias=False)
        self.pos_bias_u = nn.Parameter(torch.empty(heads, self.head_dim))
        self.pos_bias_v = nn.Parameter(torch.empty(heads, self.head_dim))

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """X [1, N, C]; which keys each query sees, [N, N] bool."""
        query, key, value = (self._by_head(layer(x)) for layer in (self.linear_q, self.linear_k, self.linear_v))
        count = x.shape[1]
        distances = torch.arange(1 - count, count)
        table = self._by_head(self.linear_pos(encoded(distances, x.shape[-1]).to(x.dtype)[None]))
        by_distance = (query + self.pos_bias_v[:, None]) @ table.transpose(1, 2)
        place = torch.arange(count)
        at = (place[:, None] - place[None] + count - 1).expand(self.heads, -1, -1)
        scores = (query + self.pos_bias_u[:, None]) @ key.transpose(1, 2) + by_distance.gather(2, at)
        scores = (scores / sqrt(self.head_dim)).masked_fill(~seen, -torch.inf)
        mixed = torch.softmax(scores, dim=-1) @ value
        out: Tensor = self.linear_out(mixed.transpose(0, 1).reshape(1, count, -1))
        return out

    def _by_head(self, x: Tensor) -> Tensor:
        """[1, N, C] as [heads, N, D]."""
        return x.reshape(x.shape[1], self.heads, self.head_dim).transpose(0, 1)


class FeedForward(nn.Module):
    """Two layers, SiLU between them."""

    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(width, units), nn.Linear(units, width)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, N, C]."""
        out: Tensor = self.w_2(functional.silu(self.w_1(x)))
        return out


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and added to the signal."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config.width, config.heads)
        self.feed_forward = FeedForward(config.width, config.units)
        self.norm_mha = nn.LayerNorm(config.width, BLOCK_EPSILON)
        self.norm_ff = nn.LayerNorm(config.width, BLOCK_EPSILON)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """X [1, N, C]; which keys each query sees, [N, N] bool."""
        x = x + self.self_attn(self.norm_mha(x), seen)
        out: Tensor = x + self.feed_forward(self.norm_ff(x))
        return out


class UpLayer(nn.Module):
    """Every step twice, and a causal convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, UP_BEHIND + 1)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, N, C]; gives [1, 2N, C]."""
        twice = x.transpose(1, 2).repeat_interleave(UPSAMPLING, dim=2)
        out: Tensor = self.conv(functional.pad(twice, (UP_BEHIND, 0)))
        return out.transpose(1, 2)


class UpsamplingEncoder(nn.Module):
    """What a checkpoint has under `encoder.`."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.embed = Embedding(config.width)
        self.pre_lookahead_layer = LookAhead(config.width, config.look_ahead)
        self.encoders = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.up_layer = UpLayer(config.width)
        self.up_embed = Embedding(config.width)
        self.up_encoders = nn.ModuleList(Block(config) for _ in range(config.up_blocks))
        self.after_norm = nn.LayerNorm(config.width, EPSILON)


class Encoder(nn.Module):
    """The encoder, and the projection to the mel frames' mean behind it."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = UpsamplingEncoder(config)
        self.encoder_proj = nn.Linear(config.width, config.mel)

    @torch.no_grad()
    def forward(self, embedded: Tensor, chunk: int | None = None, look_aheads: Sequence[int] = ()) -> Tensor:
        """A whole stream.

        Args:
            embedded: embeddings of N tokens, [1, N, C].
            chunk: tokens of a chunk: attention sees the chunk it is in and all before. None: all there are.
            look_aheads: of the first chunks, how many tokens behind each the first convolution sees; of all others, as
                many as it can.

        Returns:
            The mean [1, mel, 2N].
        """
        chunks = chunks_of(embedded.shape[1], chunk, look_aheads, self.config.look_ahead)
        parts = self.encoder
        x = parts.pre_lookahead_layer(parts.embed(embedded), chunks)
        for block in parts.encoders:
            x = block(x, _seen(chunks, 1))
        x = parts.up_embed(parts.up_layer(x))
        for block in parts.up_encoders:
            x = block(x, _seen(chunks, UPSAMPLING))
        mean: Tensor = self.encoder_proj(parts.after_norm(x))
        return mean.transpose(1, 2)


def chunks_of(count: int, chunk: int | None, look_aheads: Sequence[int], look_ahead: int) -> list[tuple[int, int, int]]:
    """Start, end and tokens seen behind it of each chunk of a stream of `count` tokens.

    Args:
        count: of the stream.
        chunk: tokens of a chunk; None: the stream is one.
        look_aheads: of the first chunks.
        look_ahead: of all others.
    """
    size = chunk or count
    starts = range(0, count, size)
    aheads = [*look_aheads, *[look_ahead] * len(starts)]
    return [(start, min(start + size, count), ahead) for start, ahead in zip(starts, aheads, strict=False)]


def _seen(chunks: Sequence[tuple[int, int, int]], factor: int) -> Tensor:
    """Which keys each query sees, [N, N] bool: those of its own chunk and of chunks before."""
    number = torch.cat([torch.full((factor * (stop - start),), n) for n, (start, stop, _) in enumerate(chunks)])
    return number[None] <= number[:, None]


def encoder_of(weights: Mapping[str, NDArray[np.float32]], config: EncoderConfig) -> Encoder:
    """The encoder of a checkpoint's `weights`, of the right names and shapes; those of the host half are left out."""
    with torch.device("meta"):
        made = Encoder(config)
    taken = {name: torch.from_numpy(array) for name, array in weights.items() if name.startswith((ENCODER, PROJECTION))}
    made.load_state_dict(taken, assign=True)
    return made.requires_grad_(False).eval()
