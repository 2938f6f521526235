"""A sentence to hear of decoders whose fixed window is walked over a latent (`converters.vits_windows`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from contracts.contract import Window
from converters.stages import Array, FloatArray, Sample, Session
from converters.vits_windows import AUDIO, MASK, Latent, decode_by_windows
from surgery.mask_decoder import mask_decoder

MOST_IDS = 2048
"""Of a sample. Piper's default voice takes 37 ids a second: 55 s of speech, some hundred windows, each 2 s in the
simulator."""


def decoder_of_windows(cut: ir.Model, masked: bool) -> ir.Model:
    """`cut` as the engine decodes windows: `masked` behind each convolution, or not. What pads one is heard so."""
    return mask_decoder(MASK).rewrite(cut).model if masked else cut


def sample_by_windows(
    decoder: Session, latent: Latent, window: Window, whole: FloatArray, said: str, sample_rate: int
) -> Sample:
    """The sample of `latent`, cut into windows, each decoded and all put together.

    Args:
        decoder: `decoder_of_windows`, of any length.
        latent: what is said.
        window: the engine's.
        whole: its full-length decode by the original.
        said: what it is, for the user; its length is put behind.
        sample_rate: in Hz.
    """
    feeds: list[Mapping[str, Array]] = []

    def decoded(feed: Mapping[str, Array]) -> dict[str, Array]:
        feeds.append(feed)
        return decoder(feed)

    def render(outputs: Sequence[Mapping[str, Array]]) -> FloatArray:
        following: Iterator[Mapping[str, Array]] = iter(outputs)
        return decode_by_windows(lambda feed: {AUDIO: next(following)[AUDIO]}, latent, window, window.left)

    windowed = decode_by_windows(decoded, latent, window, window.left)
    return Sample(
        said=f"{said}, {_frames(latent.frames, window.frames)}",
        feeds=tuple(feeds),
        render=render,
        whole=whole,
        windowed=windowed,
        sample_rate=sample_rate,
    )


def counted(count: int, what: str) -> str:
    """`1 id`, `2 ids`."""
    return f"{count} {what}{'s' * (count != 1)}"


def _frames(frames: int, window: int) -> str:
    return counted(frames, "frame") + (f" (less than a window, so padded to {window})" if frames < window else "")
