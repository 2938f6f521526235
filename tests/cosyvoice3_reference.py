"""CosyVoice3's flow estimator put together from the original's blocks, which F5-TTS's package carries.

Its own module is in no package. What is between the blocks is written here after upstream's source, in other words than
ours: inputs joined and projected, two causal convolutions in groups, and the last modulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.cosyvoice3.config import DitConfig
from tests.cosyvoice_reference import cosyvoice_module


class Original:
    """The estimator with `weights` by upstream's names."""

    def __init__(self, config: DitConfig, weights: Mapping[str, Any]) -> None:
        modules = cosyvoice_module("f5_tts.model.modules")
        self.weights = {name: torch.from_numpy(array) for name, array in weights.items()}
        rotary = cosyvoice_module("x_transformers.x_transformers").RotaryEmbedding(config.head_dim)
        self.rope = rotary.forward_from_seq_len
        self.time = self._filled(modules.TimestepEmbedding(config.width, config.frequencies), "time_embed.")
        mult = config.inner / config.width
        self.blocks = [
            self._filled(
                modules.DiTBlock(config.width, config.heads, config.head_dim, mult, dropout=0.0),
                f"transformer_blocks.{number}.",
            )
            for number in range(config.depth)
        ]
        self.last = self._filled(modules.AdaLayerNormZero_Final(config.width), "norm_out.")
        self.groups = config.groups

    def _filled(self, module: nn.Module, prefix: str) -> nn.Module:
        own = {name.removeprefix(prefix): held for name, held in self.weights.items() if name.startswith(prefix)}
        module.load_state_dict(own)
        return module.eval()

    def _layer(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _placed(self, x: Tensor) -> Tensor:
        for number in (1, 2):
            name = f"input_embed.conv_pos_embed.conv{number}.0"
            kernel = self.weights[f"{name}.weight"]
            past = torch.cat((torch.zeros(*x.shape[:2], kernel.shape[2] - 1), x), dim=2)
            x = functional.conv1d(past, kernel, self.weights[f"{name}.bias"], groups=self.groups)
            x = x * torch.log1p(x.exp()).tanh()
        return x

    @torch.inference_mode()
    def __call__(self, x: Tensor, mask: Tensor, mu: Tensor, t: Tensor, spks: Tensor, cond: Tensor) -> Tensor:
        """What upstream's forward gives, all frames seen by all."""
        frames = x.shape[2]
        joined = torch.cat((x, cond, mu, spks[:, :, None].repeat(1, 1, frames)), dim=1).transpose(1, 2)
        stream = self._layer(joined, "input_embed.proj")
        stream = stream + self._placed(stream.transpose(1, 2)).transpose(1, 2)
        time = self.time(t)
        for block in self.blocks:
            stream = block(stream, time, mask=mask[:, 0] > 0.5, rope=self.rope(frames))
        return self._layer(self.last(stream, time), "proj_out").transpose(1, 2)
