"""The generator's weights: from the checkpoint's layout to the module's, with what can be folded folded.

Checkpoint (`decoder.module.generator.`)       here
    resblocks.J.adain1.K.fc, its two halves    resblocks.J.K.0.adain.scale and .shift (adain2: half 1)
    resblocks.J.alpha1.K                       resblocks.J.K.0.alpha
    resblocks.J.convs1.K                       resblocks.J.K.0.conv
    ups.I, noise_convs.I, conv_post            the same; noise_res.I like resblocks.J

AdaIN is (1 + gamma) n + beta, gamma and beta linear in the style: the 1 goes into gamma's bias, and so does an affine
step of the instance norm, where a checkpoint has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np
from numpy.typing import NDArray

from models.kokoro.config import GeneratorConfig
from models.weight_norm import folded

Array = NDArray[np.float32]
Arrays = Mapping[str, Array]

PREFIX = "decoder.module.generator"
"""Where the generator stands in a checkpoint."""


def under(weights: Arrays, prefix: str) -> dict[str, Array]:
    """What stands under `prefix.`, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in weights.items() if name.startswith(prefix + ".")}


def generator_weights(checkpoint: Arrays, config: GeneratorConfig) -> dict[str, Array]:
    """The weights of `models.kokoro.generator.Generator`.

    Args:
        checkpoint: a whole checkpoint, official names.
        config: its sizes.
    """
    source = folded(under(checkpoint, PREFIX))
    stages, kernels = len(config.upsample_rates), len(config.resblock_kernel_sizes)
    made = {name: array for name, array in source.items() if name.startswith(("ups.", "noise_convs.", "conv_post."))}
    blocks = [*(f"resblocks.{j}" for j in range(stages * kernels)), *(f"noise_res.{i}" for i in range(stages))]
    for block in blocks:
        steps = len({name.split(".")[1] for name in under(source, block) if name.startswith("convs1.")})
        for step in range(steps):
            for half in range(2):
                made.update(_half(under(source, block), step, half, f"{block}.{step}.{half}"))
    return made


def _half(block: Arrays, step: int, half: int, name: str) -> dict[str, Array]:
    adain, alpha = under(block, f"adain{half + 1}.{step}"), block[f"alpha{half + 1}.{step}"]
    weight, bias = adain["fc.weight"].astype(np.float64), adain["fc.bias"].astype(np.float64)
    channels = weight.shape[0] // 2
    scale = np.column_stack([weight[:channels], bias[:channels] + 1])
    shift = np.column_stack([weight[channels:], bias[channels:]])
    if "norm.weight" in adain:  # (1 + gamma) (w n + b) + beta
        shift = shift + scale * adain["norm.bias"].astype(np.float64)[:, None]
        scale = scale * adain["norm.weight"].astype(np.float64)[:, None]
    convolution = {f"{name}.conv.{what}": array for what, array in under(block, f"convs{half + 1}.{step}").items()}
    return {
        f"{name}.adain.scale.weight": np.asarray(scale[:, :-1], np.float32),
        f"{name}.adain.scale.bias": np.asarray(scale[:, -1], np.float32),
        f"{name}.adain.shift.weight": np.asarray(shift[:, :-1], np.float32),
        f"{name}.adain.shift.bias": np.asarray(shift[:, -1], np.float32),
        f"{name}.alpha": alpha,
        **convolution,
    }


def in_half_turns(weights: Arrays, unit: float = 1.0) -> dict[str, Array]:
    """`weights` with each Snake's argument counted in half turns, where a sine is folded; exactly the same function.

    With t = c alpha u / pi:  u + sin^2(alpha u) / alpha = (pi / (c alpha)) (t + sin^2(pi t / c) c / pi)

    c alpha / pi goes into the AdaIN before it, its inverse into the convolution behind it, and alpha becomes pi / c.

    Args:
        weights: of a generator.
        unit: c, what a half turn counts.
    """
    made = dict(weights)
    for name, alpha in weights.items():
        if name.endswith(".alpha"):
            stem = name.removesuffix(".alpha")
            turns = alpha.astype(np.float64).reshape(-1) * unit / pi
            for part in ("scale.weight", "scale.bias", "shift.weight", "shift.bias"):
                array = weights[f"{stem}.adain.{part}"]
                made[f"{stem}.adain.{part}"] = np.asarray(_by_row(array, turns), np.float32)
            kernel = weights[f"{stem}.conv.weight"]
            made[f"{stem}.conv.weight"] = np.asarray(kernel / turns[:, None], np.float32)
            made[name] = np.full((1, 1, 1), pi / unit, np.float32)
    return made


def _by_row(array: NDArray[np.float32], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(array * factors.reshape(-1, *[1] * (array.ndim - 1)), np.float64)
