"""Runs CosyVoice2's vocoder and its predictor of pitch on arrays, with an eye on the sines."""

from __future__ import annotations

from math import pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.cosyvoice2.f0 import Pitch
from models.cosyvoice2.hift import Hift, Snake
from models.cosyvoice2.source import Excitation

FloatArray = NDArray[np.float32]


def pitched(pitch: Pitch, mel: FloatArray) -> FloatArray:
    """Pitch [1, N] in Hz of mel frames [1, M, N]."""
    with torch.inference_mode():
        found: FloatArray = pitch(torch.from_numpy(np.ascontiguousarray(mel))).numpy()
    return found


def excited(
    excitation: Excitation, pitch: FloatArray, noise: FloatArray, before: FloatArray, known: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What `Excitation.forward` gives."""
    with torch.inference_mode():
        given = (torch.from_numpy(np.ascontiguousarray(array)) for array in (pitch, noise, before, known))
        har, source, turns = excitation(*given)
    return har.numpy(), source.numpy(), turns.numpy()


def vocoded_and_watched(hift: Hift, mel: FloatArray, har: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """The spectrogram of a stretch; of each Snake in the graph's order, the largest |alpha x| of each channel over pi.

    Args:
        hift: the vocoder.
        mel: [1, M, N].
        har: [1, 18, 120 N + 1].
    """
    largest: list[FloatArray] = []

    def look(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, Snake)
        largest.append((inputs[0].abs().amax(dim=(0, 2)) * module.alpha.abs() / pi).numpy())

    hooks = [module.register_forward_pre_hook(look) for module in hift.modules() if isinstance(module, Snake)]
    try:
        with torch.inference_mode():
            given = (torch.from_numpy(np.ascontiguousarray(array)) for array in (mel, har))
            spectrogram: FloatArray = hift(*given).numpy()
    finally:
        for hook in hooks:
            hook.remove()
    return spectrogram, largest
