"""A small CosyVoice2 vocoder for tests: its weights, its file, and the original at the same weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from models.cosyvoice2.hift_config import HiftConfig
from models.cosyvoice2.hift_stand_in import stand_in
from models.weight_norm import folded
from tests.cosyvoice_reference import cosyvoice_module

SMALL = HiftConfig(mels=10, channels=32, pitch_channels=12)

Floats = NDArray[np.float32]


@cache
def raw_weights(config: HiftConfig = SMALL) -> dict[str, Floats]:
    """As a file holds them."""
    return stand_in(config, 0)


@cache
def weights_of(config: HiftConfig = SMALL) -> dict[str, Floats]:
    """Weight norm folded."""
    return folded(raw_weights(config))


def write_hift(path: Path, prefix: str = "", change: dict[str, Floats | None] | None = None) -> Path:
    """A `hift.pt` of them; `change` takes the place of tensors, or takes them out."""
    held = {**raw_weights(), **(change or {})}
    torch.save({prefix + name: torch.from_numpy(array) for name, array in held.items() if array is not None}, path)
    return path


def original(config: HiftConfig = SMALL) -> Any:
    """The original at the same weights, its sizes as `cosyvoice2.yaml` has them."""
    generator = cosyvoice_module("cosyvoice.hifigan.generator").HiFTGenerator
    predictor = cosyvoice_module("cosyvoice.hifigan.f0_predictor").ConvRNNF0Predictor
    made: nn.Module = generator(
        in_channels=config.mels,
        base_channels=config.channels,
        nb_harmonics=8,
        sampling_rate=24000,
        nsf_alpha=0.1,
        nsf_sigma=0.003,
        nsf_voiced_threshold=10,
        upsample_rates=[8, 5, 3],
        upsample_kernel_sizes=[16, 11, 7],
        istft_params={"n_fft": 16, "hop_len": 4},
        resblock_kernel_sizes=[3, 7, 11],
        resblock_dilation_sizes=[[1, 3, 5]] * 3,
        source_resblock_kernel_sizes=[7, 7, 11],
        source_resblock_dilation_sizes=[[1, 3, 5]] * 3,
        lrelu_slope=0.1,
        audio_limit=0.99,
        f0_predictor=predictor(num_class=1, in_channels=config.mels, cond_channels=config.pitch_channels),
    )
    made.load_state_dict({name: torch.from_numpy(array) for name, array in raw_weights(config).items()})
    return made.eval().requires_grad_(False)


def original_spectrogram(model: Any, mel: Floats, source: Floats) -> Floats:
    """What the original's last convolution gives of mel [1, M, W] and a source [1, 480 W]."""
    seen: list[torch.Tensor] = []
    hook = model.conv_post.register_forward_hook(lambda module, given, made: seen.append(made))
    try:
        model.decode(torch.from_numpy(mel), torch.from_numpy(source)[:, None])
    finally:
        hook.remove()
    found: Floats = seen[0].numpy()
    return found


def drawn(shape: tuple[int, ...], seed: int = 0, size: float = 1.0) -> Floats:
    """Normal numbers."""
    return np.asarray(size * np.random.default_rng(seed).standard_normal(shape), np.float32)
