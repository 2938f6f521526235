"""A Kokoro generator for any length, an ONNX on the CPU: the decode of a whole sentence that `gain` compares with.

docs/kokoro.md (Gain) has the program that makes the file of an engine's twin.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import HostTensor, open_host
from rknn_tts_runtime.faults import Mismatch, RunFault
from rknn_tts_runtime.speaking.kokoro_generator import (
    HARMONICS,
    LATENT,
    PLAIN,
    SPECTROGRAM,
    STYLE,
    FloatArray,
    Seam,
    SeamSizes,
)

FullLength = Callable[[FloatArray, FloatArray, FloatArray], Array]
"""Decodes a whole sentence: x `[1, K, N]`, har `[1, H, R N + 1]`, style `[1, S]` to its columns `[1, H, R N + 1]`."""


def open_full_length(path: Path, sizes: SeamSizes, host: str) -> FullLength:
    """The generator in the ONNX `path`, loaded.

    Args:
        path: the file; it takes x, har and style with free axes of frames, with axes of one among them or not.
        sizes: of what the host half gives.
        host: the host half's name, for sentences.

    Raises:
        BadInput: it cannot be loaded.
        Mismatch: it takes or gives something else.
    """
    session = open_host(path)
    taken, given = ({info.name: info for info in infos} for infos in (session.inputs, session.outputs))
    if set(taken) != set(PLAIN) or set(given) != {SPECTROGRAM}:
        raise Mismatch(
            f"{path}: takes {', '.join(taken)} and gives {', '.join(given)}, expected {', '.join(PLAIN)} and "
            f"{SPECTROGRAM}: it is no generator for any length (docs/kokoro.md, Gain)."
        )
    channels = {LATENT: sizes.channels, HARMONICS: sizes.rows}
    for name, count in channels.items():
        _check_free(path, taken[name], count, host)
    if np.prod([size or 0 for size in taken[STYLE].shape]) != sizes.style:
        raise Mismatch(f"{path}: its {STYLE} is {list(taken[STYLE].shape)}, and {host} gives {sizes.style} numbers.")

    def decode(x: FloatArray, har: FloatArray, style: FloatArray) -> Array:
        arrays = {LATENT: x, HARMONICS: har, STYLE: style}
        feed = {name: array.reshape(_shape(taken[name], array)) for name, array in arrays.items()}
        return session.run([SPECTROGRAM], feed)[SPECTROGRAM].reshape(1, har.shape[1], -1)

    return decode


def whole_of(full_length: FullLength, seam: Seam) -> Array:
    """The decode of a sentence at once, `[1, H, R N + 1]`.

    Raises:
        RunFault: it has another shape, or numbers that are not finite.
    """
    whole = np.asarray(full_length(seam.x, seam.har, seam.style))
    if whole.shape != seam.har.shape or not np.isfinite(whole).all():
        raise RunFault(
            f"The full-length decode has the shape {list(whole.shape)}, expected {list(seam.har.shape)}, of finite "
            "numbers."
        )
    return whole


def _check_free(path: Path, info: HostTensor, channels: int, host: str) -> None:
    if len(info.shape) < 3 or info.shape[-1] is not None:
        raise Mismatch(
            f"{path}: its {info.name} is of the shape {list(info.shape)}, of a fixed length, as an engine's twin is: "
            "the program in docs/kokoro.md (Gain) makes one for any length of it."
        )
    if info.shape[1] != channels:
        raise Mismatch(f"{path}: its {info.name} has {info.shape[1]} channels, and {host} gives {channels}.")


def _shape(info: HostTensor, array: FloatArray) -> tuple[int, ...]:
    """The shape of `array` as `info` has it: its last axis is the free one, others are stated."""
    return tuple(array.shape[-1] if size is None else size for size in info.shape)
