"""One engine of a decoder of a VITS: what surgery makes of its window, and what it is fed where it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir
from rknn_tts_runtime.window_cover import BEGINNING, BETWEEN, END, place_input

from contracts.contract import Window
from converters.stages import Array
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import MASK, Latent
from surgery.declaration import Pass
from surgery.mask_decoder import mask_decoder
from surgery.trim_decoder import trim_decoder, trimmed_frames


@dataclass(frozen=True)
class Feeds:
    """Inputs of one compiled window, without padding and with it.

    Attributes:
        whole: those without.
        added: of each of these, what inputs hold that a pass adds; none at all: no pass adds any.
        padded: those with padding.
    """

    whole: tuple[Mapping[str, Array], ...]
    added: tuple[Mapping[str, Array], ...]
    padded: tuple[Mapping[str, Array], ...]


def frames_behind(cut: ir.Model, window: Window) -> int:
    """Of how many frames the samples come out of a decoder whose `window` is trimmed."""
    return trimmed_frames(cut, MASK, window.emitted)


def passes_of(made: DecoderWindow, masking: bool) -> tuple[Pass, ...]:
    """What is done to a decoder whose sizes are fixed, `masking` it where its graph has no masks yet."""
    if made.trim is not None:
        return (trim_decoder(MASK, made.window.left, made.window.emitted, made.trim.input),)
    return (mask_decoder(MASK),) if masking else ()


def feeds_of(made: DecoderWindow, one: Latent, other: Latent) -> Feeds:
    """What an engine is judged on: `one`, and `other`, which somebody else says where a voice has somebody.

    An engine that is trimmed gets both, at each place in an utterance; it takes no padding. What else takes no padding
    in its ladder gets both; all others get `other` with some.
    """
    if made.trim is not None:
        places = tuple({made.trim.input: place_input(place)} for place in (BEGINNING, BETWEEN, END))
        return Feeds((one.feed, other.feed, one.feed), places, ())
    if not made.takes_short:
        return Feeds((one.feed, other.feed) if one.given else (one.feed,), (), ())
    return Feeds((one.feed,), (), (other.padded().feed,))
