"""A small Kokoro with the rates and the transform of Kokoro-82M: its host half, and the twins of both engines."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import onnx_ir as ir
from torch import nn

from converters.kokoro.host_half import host_half
from models.kokoro.config import KOKORO_82M, KokoroConfig
from models.kokoro.generator import Generator, instance_norm
from models.kokoro.generator_graph import Padded, Whole, shapes_of, traced
from models.kokoro.generator_weights import generator_weights
from surgery.rewrite_interface_axes import rewrite_interface_axes
from tests.kokoro_writer.checkpoint import Weights
from tests.kokoro_writer.speaking import SPEAKING, VOCABULARY
from tests.models.kokoro.checkpoints import tame_weights

LIKE_KOKORO: KokoroConfig = replace(
    SPEAKING,
    istftnet=replace(
        SPEAKING.istftnet,
        upsample_rates=KOKORO_82M.istftnet.upsample_rates,
        upsample_kernel_sizes=KOKORO_82M.istftnet.upsample_kernel_sizes,
        gen_istft_n_fft=KOKORO_82M.istftnet.gen_istft_n_fft,
    ),
)
"""Small, with Kokoro-82M's rates and transform, which programs take for granted."""

WIDTH, CONTEXT = 32, 8


@cache
def quiet_weights() -> Weights:
    """Weights whose speech stays well within full scale."""
    weights = tame_weights(LIKE_KOKORO)
    for name, array in weights.items():
        if ".generator." in name and name.endswith((".weight_g", ".alpha1.0")):
            weights[name] = np.float32(0.3) * array
    return weights


@cache
def host() -> ir.Model:
    """Its host half, which knows the small vocabulary."""
    return host_half(quiet_weights(), LIKE_KOKORO, VOCABULARY)


@cache
def twin(role: str) -> ir.Model:
    """The twin of the engine for `role`, "full" or "short", its axes as an engine has them."""
    sizes = LIKE_KOKORO.istftnet
    generator = Generator(generator_weights(quiet_weights(), sizes), sizes).eval()
    module: nn.Module = Padded(generator) if role == "short" else Whole(generator, instance_norm)
    shapes = shapes_of(sizes, LIKE_KOKORO.style_dim, WIDTH, masked=role == "short")
    return rewrite_interface_axes().rewrite(traced(module, shapes)).model
