"""Decoders of random weights, ours and the reference's of the same."""

from __future__ import annotations

from functools import cache
from math import log10
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.qwen3.config import DecoderConfig
from models.qwen3.decoder import Decoder
from tests.qwen3_configs import REDUCED
from tests.qwen3_reference import reference_decoder

EXACT_DB = 120.0
"""What two orders of the same float32 arithmetic agree to, at least (issue: the full decode)."""


@cache
def random_decoder(config: DecoderConfig = REDUCED, seed: int = 0) -> Decoder:
    """Ours, where every parameter is random and matters, and the audio is of a size that is not clipped."""
    decoder, draw = Decoder(config).eval(), torch.Generator().manual_seed(seed)

    def normal(size: float, mean: float = 0.0) -> Tensor:
        return mean + size * torch.randn(parameter.shape, generator=draw)

    for name, parameter in decoder.named_parameters():
        if name.endswith(("alpha", "beta", "norm.weight", "layernorm.weight")):
            value = normal(0.3, mean=1.0 if "norm" in name else 0.0)
        elif name.endswith(("gamma", "scale")):
            value = normal(0.1, mean=0.5)
        elif name.endswith("cluster_usage"):
            value = normal(0.0, mean=0.5) + torch.rand(parameter.shape, generator=draw)
        elif name.endswith("bias"):
            value = normal(0.1)
        elif name.endswith(("q_proj.weight", "k_proj.weight")):
            value = normal(1.5 / parameter.shape[1] ** 0.5)  # scores that tell codes apart: about 2 either way
        else:
            value = normal(0.5 / _fan_in(decoder, name, parameter) ** 0.5)
        parameter.requires_grad_(False).copy_(value)
    return decoder


def _fan_in(decoder: Decoder, name: str, parameter: Tensor) -> float:
    """Numbers that one number of the layer's output is made of."""
    if name.endswith("embedding_sum"):
        return 1
    layer = decoder.get_submodule(name.removesuffix(".weight"))
    if isinstance(layer, nn.ConvTranspose1d):
        return layer.in_channels * layer.kernel_size[0] / layer.stride[0]
    return parameter[0].numel()


@cache
def original(config: DecoderConfig = REDUCED, seed: int = 0) -> Any:
    """The reference's decoder with the weights of `random_decoder`, under the same names and no others."""
    made = reference_decoder(config)
    made.load_state_dict(random_decoder(config, seed).state_dict(), strict=True)
    return made


def both(path: str, config: DecoderConfig = REDUCED) -> tuple[Any, Any]:
    """Our module and the reference's at `path` of the decoder ("decoder.1.block.2")."""
    return random_decoder(config).get_submodule(path), original(config).get_submodule(path)


def random_codes(count: int, config: DecoderConfig = REDUCED, seed: int = 0) -> Tensor:
    """[1, Q, count]"""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(config.codebook_size, (1, config.num_quantizers, count), generator=draw)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def snr(wanted: Tensor, got: Tensor) -> float:
    """In dB. Not finite numbers are an error, and a wrong shape is."""
    assert wanted.shape == got.shape
    a, b = (np.asarray(part.detach().double().numpy()) for part in (wanted, got))
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()
    assert a.any()
    noise = float(((a - b) ** 2).sum())
    return 10 * log10(float((a**2).sum()) / noise) if noise else float("inf")
