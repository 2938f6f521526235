"""The original generator behind its seam: the reference's forward without source, STFT and iSTFT."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from models.kokoro.config import KokoroConfig
from models.kokoro.generator_weights import PREFIX
from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import Weights

TOLD = {"m_source", "f0_upsamp", "stft"}
"""Parts of the reference's generator that stay outside the seam."""


def reference_generator(weights: Weights, config: KokoroConfig) -> Any:
    """The reference's `Generator` with the weights of a checkpoint, no affine step in its instance norms."""
    sizes = config.istftnet
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: a successor to its weight_norm
        made = (
            kokoro_module("istftnet")
            .Generator(
                config.style_dim,
                list(sizes.resblock_kernel_sizes),
                list(sizes.upsample_rates),
                sizes.upsample_initial_channel,
                [list(dilations) for dilations in sizes.resblock_dilation_sizes],
                list(sizes.upsample_kernel_sizes),
                sizes.gen_istft_n_fft,
                sizes.gen_istft_hop_size,
            )
            .eval()
        )
    mine = {
        name.removeprefix(f"{PREFIX}."): torch.from_numpy(array.copy())
        for name, array in weights.items()
        if name.startswith(f"{PREFIX}.")
    }
    missing, unexpected = made.load_state_dict(mine, strict=False)
    assert not unexpected
    assert all(".norm." in name or name.split(".")[0] in TOLD for name in missing)
    return made


def spec_phase(generator: Any, x: Tensor, har: Tensor, style: Tensor) -> Tensor:
    """Raw `conv_post`, by the reference's modules, in the order of its forward."""
    with torch.no_grad():
        for i in range(generator.num_upsamples):
            branch = generator.noise_res[i](generator.noise_convs[i](har), style)
            x = generator.ups[i](functional.leaky_relu(x, 0.1))
            if i == generator.num_upsamples - 1:
                x = generator.reflection_pad(x)
            x = x + branch
            first = i * generator.num_kernels
            blocks = [generator.resblocks[first + j](x, style) for j in range(generator.num_kernels)]
            x = torch.stack(blocks).sum(0) / generator.num_kernels
        out: Tensor = generator.conv_post(functional.leaky_relu(x))
    return out
