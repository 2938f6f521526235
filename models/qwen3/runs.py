"""Runs the decoder and its steps on arrays, with an eye on its sines."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.qwen3.decoder import Decoder
from models.qwen3.layers import SNAKE_EPSILON, SnakeBeta

FloatArray = NDArray[np.float32]


def quantized(decoder: Decoder, codes: NDArray[np.int64]) -> FloatArray:
    """The hidden state [1, codebook_dim, N] of codes [1, Q, N]."""
    with torch.inference_mode():
        hidden: FloatArray = decoder.quantizer(torch.from_numpy(np.ascontiguousarray(codes))).numpy()
    return hidden


def voiced(decoder: Decoder, hidden: FloatArray) -> FloatArray:
    """Audio [1, 1, 1920 N] of a hidden state [1, codebook_dim, N]."""
    with torch.inference_mode():
        audio: FloatArray = decoder.voiced(torch.from_numpy(np.ascontiguousarray(hidden))).numpy()
    return audio


def voiced_and_watched(decoder: Decoder, hidden: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """The audio of a hidden state; of each SnakeBeta in order, the largest |x e^alpha| of each channel, over pi."""
    largest: list[FloatArray] = []

    def look(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, SnakeBeta)
        reached = inputs[0].abs().amax(dim=(0, 2)) * torch.exp(module.alpha) / pi
        largest.append(reached.numpy())

    snakes = [module for module in decoder.modules() if isinstance(module, SnakeBeta)]
    hooks = [module.register_forward_pre_hook(look) for module in snakes]
    try:
        audio = voiced(decoder, hidden)
    finally:
        for hook in hooks:
            hook.remove()
    return audio, largest


def stepped(step: nn.Module, feed: Mapping[str, NDArray[np.generic]]) -> tuple[FloatArray, FloatArray]:
    """Audio and cache of a step's module, of its inputs in their order."""
    with torch.inference_mode():
        audio, cache = step(*(torch.from_numpy(np.ascontiguousarray(array)) for array in feed.values()))
    return audio.numpy(), cache.numpy()


def gains_of(decoder: Decoder) -> list[FloatArray]:
    """What each SnakeBeta multiplies its squared sine by, in order and by channel, 1 / (e^beta + 1e-9)."""
    snakes = [module for module in decoder.modules() if isinstance(module, SnakeBeta)]
    return [np.asarray((1 / (torch.exp(m.beta.double()) + SNAKE_EPSILON)).float().numpy()) for m in snakes]
