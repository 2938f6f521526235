"""A streaming step, and the quantizer ahead of it, as ONNX graphs, traced by torch's exporter."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from torch import nn

from models.qwen3.config import DecoderConfig
from models.qwen3.quantizer import JoinedTable, Quantizer
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
    return traced(JoinedTable(quantizer), (example,), [CODES], [HIDDEN], dynamic_shapes={"codes": {2: length}})
