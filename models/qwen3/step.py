"""One streaming step of Qwen3's speech decoder: B codes and a cache in, their audio and the next cache out.

    hidden [1, 512, 1, B], cache [1, R, 1, W]  ->  audio [1, 1, 1920 B, 1], cache_out [1, R, 1, W]

The cache is flat: rows of W numbers, R W = numel. Steps in a row give what the whole decode gives
(`models.qwen3.decoder`), from a cache of zeros on. The arithmetic is the reference's, in another order where that costs
an NPU less:

- Keys are cached as they are and turned by their slot: attention sees differences of positions only, so the tables are
  constants, and no counter or table is an input.
- Which cached codes are real is a slice of the cache; the additive mask follows from it.
- Norm weights, layer scales, ConvNeXt's gamma and SnakeBeta's exponentials are folded, in double precision.
- No long signal is ever joined with a tail (`models.qwen3.step_waves`).
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from contracts.contract import Cache
from models.npu_layers import MASKED, pointwise
from models.qwen3.cache import VALID, group_width, row_width
from models.qwen3.config import DecoderConfig
from models.qwen3.decoder import Decoder
from models.qwen3.layers import CausalTransposedConv, ConvNeXt, SnakeBeta
from models.qwen3.quantizer import Quantizer
from models.qwen3.step_cache import State, grouped, packed, unpacked
from models.qwen3.step_codes import codes_table
from models.qwen3.step_layers import (
    Rotation,
    StepConvNeXt,
    StepTransformer,
    behind_norm,
    rms_normed,
    step_convolution,
)
from models.qwen3.step_waves import Constants, Waves
from models.qwen3.transformer import TransformerLayer


class Step(nn.Module):
    """A step of a fixed number of codes, from the seam."""

    def __init__(self, decoder: Decoder, layout: Cache, codes: int, constants: Constants | None = None) -> None:
        """A step of `decoder`.

        Args:
            decoder: the whole decoder, whose weights it shares.
            layout: of the cache.
            codes: B.
            constants: what SnakeBetas leave out in the body (`models.qwen3.step_waves`); None: nothing.
        """
        super().__init__()
        self.layout, self.group = layout, group_width(decoder.config)
        self.latent = Latent(decoder, codes)
        self.waves = Waves(decoder.decoder, no_constants(decoder) if constants is None else constants)

    def forward(self, hidden: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden [1, 512, 1, B], cache [1, R, 1, W] -> audio [1, 1, 1920 B, 1], cache_out [1, R, 1, W]."""
        old = unpacked(cache, self.layout, self.group)
        new: State = {}
        x = self.latent(hidden, old, new)
        known = old[VALID][:, -1:, :, :1]  # of the last code
        audio = self.waves(x.reshape(1, x.shape[1], -1, 1), known, old, new)
        return audio.clamp(-1, 1), packed(new, self.layout, cache)


def no_constants(decoder: Decoder) -> list[Tensor]:
    """For each SnakeBeta, zeros."""
    return [torch.zeros_like(layer.alpha) for layer in decoder.modules() if isinstance(layer, SnakeBeta)]


class Latent(nn.Module):
    """The step up to the wave decoder: [1, latent_dim, 1, 4 B], time on the width."""

    unseen: Tensor

    def __init__(self, decoder: Decoder, codes: int) -> None:
        super().__init__()
        config, transformer = decoder.config, decoder.pre_transformer
        kept, self.codes, self.epsilon = config.kv_len, codes, config.rms_norm_eps
        self.config = config
        self.pre_conv = step_convolution(decoder.pre_conv)
        self.input_proj = pointwise(transformer.input_proj.weight, transformer.input_proj.bias)
        self.layers = nn.ModuleList(
            StepTransformer(cast(TransformerLayer, layer), config.rms_norm_eps) for layer in transformer.layers
        )
        self.output_proj = behind_norm(transformer.output_proj, transformer.norm)
        self.upsample = nn.ModuleList(
            nn.ModuleList([cast(CausalTransposedConv, up), StepConvNeXt(cast(ConvNeXt, block))])
            for up, block in (tuple(cast(nn.ModuleList, stage)) for stage in decoder.upsample)
        )
        self.turns = nn.ModuleList(
            Rotation(slots, config.head_dim, config.rope_theta)
            for slots in (range(kept, kept + codes), range(kept + codes))
        )
        slots = torch.arange(kept + codes)
        ago = slots[None, kept:] - slots[:, None]  # keys by queries
        unseen = torch.where((ago < 0) | (ago > kept), MASKED, 0.0)
        self.register_buffer("unseen", unseen[None, :, None].float())

    def forward(self, hidden: Tensor, old: State, new: State) -> Tensor:
        """Hidden [1, 512, 1, B]; adds what it leaves to `new`."""
        x = self.input_proj(self.pre_conv(_continued(hidden, "pre_conv", old, new)))
        mask, new[VALID] = self._mask(old[VALID])
        for number, layer in enumerate(self.layers):
            keys, values = f"layers.{number}.keys", f"layers.{number}.values"
            x, new[keys], new[values] = layer(x, old[keys], old[values], mask, list(self.turns))
        x = self.output_proj(rms_normed(x, self.epsilon))
        for number, stage in enumerate(self.upsample):
            up, block = cast("tuple[CausalTransposedConv, StepConvNeXt]", tuple(cast(nn.ModuleList, stage)))
            x = up(x.squeeze(2)).unsqueeze(2)
            x = block(x, _continued(x, f"upsample.{number}", old, new))
        out: Tensor = x
        return out

    def _mask(self, valid: Tensor) -> tuple[Tensor, Tensor]:
        """What is added to the scores [B, kept + B], and the next `valid`.

        Args:
            valid: of the cache, [1, rows, 1, W].
        """
        rows, slots = valid.shape[1], self.unseen.shape[1]
        known = torch.cat((valid, torch.ones(1, self.codes, 1, valid.shape[3], dtype=valid.dtype)), dim=1)
        mask = self.unseen + (known[:, -slots:, :, :1] - 1) * -MASKED
        return mask[0, :, 0].transpose(0, 1), known[:, -rows:]


class CodesStep(nn.Module):
    """A step from the codes themselves (`models.qwen3.step_codes`)."""

    def __init__(self, step: Step, quantizer: Quantizer) -> None:
        super().__init__()
        self.step, self.table = step, codes_table(quantizer)

    def forward(self, codes: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Codes [1, Q, B] (integers), cache [1, R, 1, W] -> audio [1, 1, 1920 B, 1], cache_out [1, R, 1, W]."""
        audio, out = self.step(self.table(codes), cache)
        return audio, out


def cache_shape(config: DecoderConfig, layout: Cache) -> tuple[int, int, int, int]:
    """Of the cache as a graph has it."""
    width = row_width(config)
    return 1, layout.numel // width, 1, width


def _continued(x: Tensor, name: str, old: State, new: State) -> Tensor:
    """X [1, C, 1, T] behind its tail in the cache; the next tail is what is last."""
    tail = old[name]
    behind = torch.cat((tail.reshape(1, -1, 1, tail.shape[3]), x), dim=3)
    new[name] = grouped(behind[..., -tail.shape[3] :], tail.shape[1])
    return behind
