"""What the host does in front of the flow: it looks tokens up, and makes a flow's speaker of an embedding.

tokens [1, N] int64 -> embedded [1, C, 1, N], of which a step takes columns; speaker [1, 192], CAMPPlus's embedding ->
spks [1, mel], the estimator's input.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice2.encoder_config import SPEAKER, TABLE
from models.cosyvoice2.encoder_states import EMBEDDED
from models.tracing import traced

TOKENS, SPEAKER_INPUT, SPEAKERS = "tokens", "speaker", "spks"


class HostHalf(nn.Module):
    """The table of tokens and the layer of the speaker, which is normed first (upstream, `cosyvoice.flow.flow`)."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        super().__init__()
        for place, name in (
            ("table", f"{TABLE}.weight"),
            ("weight", f"{SPEAKER}.weight"),
            ("bias", f"{SPEAKER}.bias"),
        ):
            self.register_buffer(place, torch.from_numpy(weights[name]))

    @torch.no_grad()
    def forward(self, tokens: Tensor, speaker: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens [1, N] int64, those below 0 as 0, and speaker [1, 192]; see above."""
        table, weight, bias = (self.get_buffer(name) for name in ("table", "weight", "bias"))
        embedded = functional.embedding(tokens.clamp(min=0), table).transpose(1, 2)[:, :, None]
        return embedded, functional.linear(functional.normalize(speaker, dim=1), weight, bias)


def host_graph(host: HostHalf) -> ir.Model:
    """The host half for any number of tokens."""
    count = torch.export.Dim("tokens_count", min=1)
    example = (torch.zeros((1, 2), dtype=torch.int64), torch.ones((1, host.get_buffer("weight").shape[1])))
    shapes = {"tokens": {1: count}, "speaker": None}
    return traced(host, example, [TOKENS, SPEAKER_INPUT], [EMBEDDED, SPEAKERS], dynamic_shapes=shapes)
