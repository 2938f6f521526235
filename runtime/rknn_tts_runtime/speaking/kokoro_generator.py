"""A Kokoro generator's engine, or two: frames, harmonics and style to spectrogram columns, window by window.

    N >= W   `main` (role full): windows without padding
    N < W    `short`: one window, padded on the right, with two masks; `main` where it takes the masks itself

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Callable, Iterator, NamedTuple

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.backends.engine import Array, Engine
from rknn_tts_runtime.faults import Mismatch, RunFault
from rknn_tts_runtime.ladders import full_or_short
from rknn_tts_runtime.manifest import EngineManifest, WindowInfo
from rknn_tts_runtime.spectrogram_gain import correct_windows
from rknn_tts_runtime.spectrogram_windows import frame_masks, join_columns, walk_spectrogram_windows

FloatArray = npt.NDArray[np.float32]
Watch = Callable[[], "AbstractContextManager[None]"]
"""Begins to count the time of one run."""

LATENT, HARMONICS, STYLE, MASK, FINE_MASK, SPECTROGRAM = "x", "har", "style", "mask", "mask_fine", "spec_phase"
PLAIN, MASKS = (LATENT, HARMONICS, STYLE), (MASK, FINE_MASK)

_AGAIN = "both come from one run of make engine FAMILY=kokoro"


class Seam(NamedTuple):
    """What the host half gives of a sentence of N frames: x `[1, K, N]`, har `[1, H, R N + 1]`, style `[1, S]`."""

    x: FloatArray
    har: FloatArray
    style: FloatArray

    @property
    def frames(self) -> int:
        """N."""
        return int(self.x.shape[-1])


class SeamSizes(NamedTuple):
    """Sizes of the seam: K channels of x, H rows of har and of the spectrogram, S numbers of style, R columns a frame,
    `hop` samples a frame at `sample_rate`."""

    channels: int
    rows: int
    style: int
    columns_per_frame: int
    hop: int
    sample_rate: int


@dataclass(frozen=True)
class WindowEngine:
    """An engine of the generator, loaded, that fits its host half.

    Attributes:
        manifest: its own.
        engine: what runs.
        window: its geometry.
        rates: columns a frame of each mask it takes; empty: it takes none.
    """

    manifest: EngineManifest
    engine: Engine
    window: WindowInfo
    rates: tuple[int, ...]

    def run(self, x: FloatArray, har: FloatArray, style: FloatArray, valid: int) -> Array:
        """Columns `[1, H, R W + 1]` of a window of which `valid` frames are the sentence's."""
        feed = {LATENT: x, HARMONICS: har, STYLE: style}
        if self.rates:
            feed.update(zip(MASKS, frame_masks(valid, self.window.frames, self.rates)))
        columns = self.engine.run(feed)[SPECTROGRAM].reshape(1, har.shape[1], -1)
        if not np.isfinite(columns).all():
            raise RunFault(f"{self.manifest.engine}: gave numbers that are not finite.")
        return columns


def window_of(manifest: EngineManifest, sizes: SeamSizes, host: str) -> tuple[WindowInfo, tuple[int, ...]]:
    """The window of an engine that fits its host half, and the rates of its masks.

    Args:
        manifest: the engine's.
        sizes: of what the host half gives.
        host: the host half's name, for sentences.

    Raises:
        Mismatch: it has another seam; both are named.
    """
    window, name = manifest.window, manifest.engine.name
    if window is None:
        raise Mismatch(f"{manifest.path}: tells of no window, so {name} is no generator of Kokoro's.")
    given = {info.name: int(np.prod(info.shape, dtype=np.int64)) for info in manifest.inputs}
    made = {info.name: int(np.prod(info.shape, dtype=np.int64)) for info in manifest.outputs}
    masked = set(given) == {*PLAIN, *MASKS}
    if not masked and set(given) != set(PLAIN):
        raise Mismatch(
            f"{name}: takes {', '.join(given)}, expected {', '.join(PLAIN)}, with {' and '.join(MASKS)} or not."
        )
    if (window.hop, window.sample_rate) != (sizes.hop, sizes.sample_rate):
        raise Mismatch(
            f"{name} has {window.hop} samples a frame at {window.sample_rate} Hz, {host} {sizes.hop} at "
            f"{sizes.sample_rate}; {_AGAIN}."
        )
    columns = sizes.columns_per_frame * window.frames + 1
    expected = {LATENT: sizes.channels * window.frames, HARMONICS: sizes.rows * columns, STYLE: sizes.style}
    rates: tuple[int, ...] = ()
    if masked:
        rates = (given[MASK] // window.frames, sizes.columns_per_frame)
        expected.update({MASK: rates[0] * window.frames, FINE_MASK: columns})
    for tensor, size in [*expected.items(), (SPECTROGRAM, sizes.rows * columns)]:
        has = made.get(tensor, 0) if tensor == SPECTROGRAM else given[tensor]
        if has != size:
            raise Mismatch(
                f"{name}: its {tensor} has {has} numbers, and for {host} it must have {size}, in windows of "
                f"{window.frames} frames; {_AGAIN}."
            )
    return window, rates


def chosen_engine(frames: int, main: WindowEngine, short: WindowEngine | None) -> WindowEngine:
    """The engine for a sentence of `frames` frames; a `main` that takes masks pads where there is no `short`.

    Raises:
        BadInput: it is shorter than a window, and no engine takes padding.
    """
    if short is None and main.rates:
        return main
    chosen = full_or_short(frames, main.manifest, None if short is None else short.manifest)
    return main if short is None or chosen is main.manifest else short


def stream_spectrogram(
    engine: WindowEngine, seam: Seam, overlap: int, watch: Watch, whole: Array | None = None
) -> Iterator[Array]:
    """The columns of a sentence `[1, H, n]` in their order, as soon as no later window changes them.

    Args:
        engine: the sentence's.
        seam: the sentence.
        overlap: frames over which neighbouring windows cross-fade.
        watch: counts the time of each run.
        whole: a decode of all of it at once, `[1, H, R N + 1]`, that windows are corrected by (`gain`); None: they stay
            as they are.

    Raises:
        RunFault: the engine failed.
    """
    columns_per_frame = (seam.har.shape[-1] - 1) // seam.frames

    def run(x: FloatArray, har: FloatArray, valid: int) -> Array:
        with watch():
            return engine.run(x, har, seam.style, valid)

    window = engine.window
    walked = walk_spectrogram_windows(
        run, seam.x, seam.har, window.frames, window.left, window.right, columns_per_frame, overlap
    )
    if whole is not None:
        walked = correct_windows(walked, whole, columns_per_frame, window.hop // columns_per_frame)
    return join_columns((columns for _, columns in walked), columns_per_frame * overlap)
