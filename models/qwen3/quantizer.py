"""The residual vector quantizer of Qwen3's speech decoder: codes to the hidden state behind it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.config import DecoderConfig

USAGE_FLOOR = 1e-5
"""Least usage that an entry's sum is divided by; written out in the reference."""


class Codebook(nn.Module):
    """Entries as a checkpoint has them: what was assigned to each, summed, and how often."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.cluster_usage = nn.Parameter(torch.ones(size), requires_grad=False)
        self.embedding_sum = nn.Parameter(torch.zeros(size, width), requires_grad=False)

    @property
    def entries(self) -> Tensor:
        """[size, width]."""
        return self.embedding_sum / self.cluster_usage.clamp(min=USAGE_FLOOR)[:, None]

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [T] -> [T, width]."""
        return self.entries[codes]


class _Layer(nn.Module):
    """A codebook, one level deeper for the sake of a checkpoint's names."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self._codebook = Codebook(size, width)

    def forward(self, codes: Tensor) -> Tensor:
        out: Tensor = self._codebook(codes)
        return out


class _Layers(nn.Module):
    def __init__(self, count: int, size: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(size, width) for _ in range(count))

    def entries(self) -> list[Tensor]:
        """Of each codebook [size, width]."""
        return [module.entries for module in self.modules() if isinstance(module, Codebook)]

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [Q, T] -> the sum [T, width], in the order of the codebooks."""
        total, *others = (layer(row) for layer, row in zip(self.layers, codes, strict=True))
        for rows in others:
            total = total + rows
        out: Tensor = total
        return out


class ResidualQuantizer(nn.Module):
    """Several codebooks whose entries are summed, and a projection of the sum."""

    def __init__(self, count: int, config: DecoderConfig) -> None:
        super().__init__()
        self.vq = _Layers(count, config.codebook_size, config.rvq_dim)
        self.input_proj = nn.Conv1d(config.codebook_dim, config.rvq_dim, 1, bias=False)
        self.output_proj = nn.Conv1d(config.rvq_dim, config.codebook_dim, 1, bias=False)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [Q, T] (integers) -> [1, codebook_dim, T]."""
        out: Tensor = self.output_proj(self.vq(codes).t()[None])
        return out


class Quantizer(nn.Module):
    """The semantic codebook and the acoustic ones, each with a projection of its own."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.semantic = config.n_q_semantic
        self.rvq_first = ResidualQuantizer(config.n_q_semantic, config)
        self.rvq_rest = ResidualQuantizer(config.n_q_acoustic, config)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [1, Q, T] (integers) -> [1, codebook_dim, T]."""
        out: Tensor = self.rvq_first(codes[0, : self.semantic]) + self.rvq_rest(codes[0, self.semantic :])
        return out


class JoinedTable(nn.Module):
    """All codebooks as one table [Q size, rvq_dim], and the projections of both groups' sums."""

    entries: Tensor
    starts: Tensor

    def __init__(self, quantizer: Quantizer) -> None:
        super().__init__()
        groups = (quantizer.rvq_first, quantizer.rvq_rest)
        entries = [book for group in groups for book in group.vq.entries()]
        self.semantic, size = quantizer.semantic, entries[0].shape[0]
        self.register_buffer("entries", torch.cat(entries))
        self.register_buffer("starts", torch.arange(len(entries))[:, None] * size)
        self.first, self.rest = (group.output_proj for group in groups)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes [1, Q, N] (integers) -> [1, codebook_dim, N]."""
        found = functional.embedding(codes[0] + self.starts, self.entries)  # [Q, N, rvq_dim]
        first, rest = found[: self.semantic].sum(0), found[self.semantic :].sum(0)
        out: Tensor = self.first(first.t()[None]) + self.rest(rest.t()[None])
        return out
