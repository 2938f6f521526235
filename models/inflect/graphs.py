"""The two graphs of an Inflect model, as its authors publish them: `duration.onnx` and `decode.onnx`.

    duration: tokens, lengths, length_scale                                ->  m_p_exp, logs_p_exp, y_mask
    decode:   m_p_exp, logs_p_exp, y_mask, zp_noise, noise_scale           ->  waveform

Names, ranks, opset and the exporter are those of the published files, read off them (Inflect-Nano-v2-ONNX: torch's
older exporter, opset 17, node names that are module paths, initialisers under `model.`). The seam is what is added
outside of all modules, `/Add_output_0` of decode: z = m_p + exp(logs_p) zp_noise noise_scale.
"""

from __future__ import annotations

import onnx_ir as ir
import torch
from torch import Tensor, nn

from models import tracing
from models.inflect.model import Inflect

TOKENS, LENGTHS, LENGTH_SCALE = "tokens", "lengths", "length_scale"
MEAN, LOG_DEVIATION, FRAME_MASK = "m_p_exp", "logs_p_exp", "y_mask"
NOISE, NOISE_SCALE, WAVEFORM = "zp_noise", "noise_scale", "waveform"

SEAM = "/Add_output_0"
"""The latent in front of the flow, in decode."""

OPSET = 17
"""Of the published files."""

_TEXT, _FRAMES, _SAMPLES = "text_len", "mel_len", "wav_len"
"""Names of the axes of any length."""

_EXAMPLE = 7
"""Tokens and frames that are traced with; any number but one, which would be taken for a constant."""


class Durations(nn.Module):
    """What `duration.onnx` computes."""

    def __init__(self, model: Inflect) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, lengths: Tensor, length_scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `Inflect.prior`."""
        return self.model.prior(tokens, lengths, length_scale)


class Decoding(nn.Module):
    """What `decode.onnx` computes."""

    def __init__(self, model: Inflect) -> None:
        super().__init__()
        self.model = model

    def forward(self, mean: Tensor, log_deviation: Tensor, mask: Tensor, noise: Tensor, noise_scale: Tensor) -> Tensor:
        """Mean, log_deviation and noise [1, C, N], mask [1, 1, N], noise_scale a scalar -> [1, 1, hop N]."""
        return self.model.voiced(mean + torch.exp(log_deviation) * noise * noise_scale, mask)


def duration_graph(model: Inflect) -> ir.Model:
    """tokens int64 [1, T], lengths int64 [1], length_scale [] -> m_p_exp, logs_p_exp [1, C, N], y_mask [1, 1, N]."""
    example = (torch.ones(1, _EXAMPLE, dtype=torch.int64), torch.tensor([_EXAMPLE]), torch.tensor(1.0))
    axes = {TOKENS: {1: _TEXT}, **{name: {2: _FRAMES} for name in (MEAN, LOG_DEVIATION, FRAME_MASK)}}
    names = [TOKENS, LENGTHS, LENGTH_SCALE], [MEAN, LOG_DEVIATION, FRAME_MASK]
    return tracing.traced_by_script(Durations(model), example, *names, OPSET, axes)


def decode_graph(model: Inflect) -> ir.Model:
    """m_p_exp, logs_p_exp, zp_noise [1, C, N], y_mask [1, 1, N], noise_scale [] -> waveform [1, 1, hop N]."""
    latent = torch.zeros(1, model.config.inter_channels, _EXAMPLE)
    example = (latent, latent, torch.ones(1, 1, _EXAMPLE), latent, torch.tensor(1.0))
    axes = {name: {2: _FRAMES} for name in (MEAN, LOG_DEVIATION, FRAME_MASK, NOISE)}
    names = [MEAN, LOG_DEVIATION, FRAME_MASK, NOISE, NOISE_SCALE], [WAVEFORM]
    return tracing.traced_by_script(Decoding(model), example, *names, OPSET, {**axes, WAVEFORM: {2: _SAMPLES}})
