"""A streaming step, and the quantizer ahead of it, as ONNX graphs, traced by torch's exporter."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.config import DecoderConfig
from models.qwen3.quantizer import Quantizer
from models.tracing import traced

HIDDEN, CODES, CACHE, AUDIO, CACHE_OUT = "hidden", "codes", "cache", "audio", "cache_out"


def step_graph(step: nn.Module, seam: str, shapes: Sequence[tuple[int, ...]]) -> ir.Model:
    """A step, whose inputs are what the seam has and the cache, of `shapes`; its outputs are audio and cache.

    Args:
        step: a `models.qwen3.step.Step`, or `CodesStep`.
        seam: HIDDEN or CODES.
        shapes: of both inputs.
    """
    first = torch.zeros(shapes[0], dtype=torch.int64 if seam == CODES else torch.float32)
    return traced(step, (first, torch.zeros(shapes[1])), [seam, CACHE], [AUDIO, CACHE_OUT])


def host_graph(quantizer: Quantizer, config: DecoderConfig) -> ir.Model:
    """The quantizer for any number of codes: codes [1, Q, N] int64 -> hidden [1, codebook_dim, N]."""
    length = torch.export.Dim("codes_length", min=1)
    example = torch.zeros((1, config.num_quantizers, 2), dtype=torch.int64)
    return traced(_Looked(quantizer), (example,), [CODES], [HIDDEN], dynamic_shapes={"codes": {2: length}})


class _Looked(nn.Module):
    """The quantizer, its entries computed and in one table."""

    def __init__(self, quantizer: Quantizer) -> None:
        super().__init__()
        self.table = JoinedTable(quantizer)

    def forward(self, codes: Tensor) -> Tensor:
        hidden: Tensor = self.table(codes)
        return hidden


class JoinedTable(nn.Module):
    """All codebooks as one table [Q size, rvq_dim], and the projections of both groups' sums."""

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
