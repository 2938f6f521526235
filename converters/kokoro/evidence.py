"""What the gates compare a Kokoro engine with: the unpatched generator, on real sentences.

    fp32.weights     the generator's part of the ONNX that weights were recovered from, against ours
    host.latent      the host half's x against that ONNX's
    fp64.window      the generator as it is exported, exact sines, against the original: full windows
    fp64.padded      the same for the masked one: padded windows against their frames decoded without padding
    fp64.context     windows against the whole decode, both with the whole's statistics: the receptive field
    fp32.export      the exported ONNX against the module it was traced from
    fp32.finished_*  the finished graph, sines rewritten, against the original
    sine.reach       how far the sines' arguments go, against how far they are folded

The original is the plain module, its arithmetic the reference's; where nothing else is said, of a window by itself.
fp64: both sides in double precision, so that their algebra is compared and not the rounding of fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rknn_tts_runtime import frame_masks, walk_spectrogram

from contracts.verdicts import Measurement
from converters.kokoro.geometry import Geometry
from converters.kokoro.utterances import FloatArray, Utterance
from converters.measured_snr import snr_db
from converters.stages import Array, Equality, Expectation
from models.kokoro.config import GeneratorConfig
from models.kokoro.generator_graph import FINE_MASK, HARMONICS, LATENT, MASK, SPECTROGRAM, STYLE
from surgery.sine_forms import Form

Decode = Callable[[Utterance], FloatArray]
"""Decodes an utterance: its spectrogram [1, 2 B, R N + 1]."""

Fed = tuple[Utterance, Mapping[str, Array]]
"""An utterance of at most a window, and the feed it makes."""

EXACT_DB = 130.0
"""Of the exported arithmetic against the original, both in double precision: 149 to 158 measured (the weights, which
carry the sines' units, stay float32). In fp32 the original itself is 128 to 135 from its own double."""

GRAPH_DB = 120.0
"""Of one arithmetic in two programs: torch and onnxruntime sum in another order (127.8 measured)."""

HOST_DB = 105.0
"""Of the host half's latent: 117 to 130 measured on six sentences. Both round in fp32, and against double precision the
worse of them reaches 108, through the pitch's and the durations' long chains."""

FINISHED_DB = {
    Form.TRIANGLE: 85.0,
    Form.FINE: 85.0,
    Form.SOFT: 85.0,
    Form.FLOOR: 85.0,
    Form.EXACT: GRAPH_DB,
    Form.CLIP: 25.0,
}
"""Of the finished graph, by the form of its sines. Clip is wrong past one wave, whatever else is right."""

EXPORT_DETAIL = "the exported ONNX in onnxruntime against the torch module that it was traced from, exact sines"

STITCHED = "windows.stitched"
_STITCHED_REASON = (
    "AdaIN takes its statistics over a window, so that windows are another valid synthesis, and no approximation, of "
    "what the whole gives"
)


SeamDecode = Callable[[tuple[FloatArray, FloatArray, FloatArray]], FloatArray]
"""The same of x, har and style."""


def inside(geometry: Geometry) -> Geometry | None:
    """The geometry of the windows inside the graph; None where it is computed as one."""
    if geometry.inner is None:
        return None
    emitted = geometry.inner - 2 * geometry.padding
    window = replace(
        geometry.window, frames=geometry.inner, emitted=emitted, left=geometry.padding, right=geometry.padding
    )
    return replace(geometry, window=window, inner=None)


def windows_of(utterance: Utterance, geometry: Geometry) -> list[Utterance]:
    """The windows of the walk, none of which holds padding."""
    found: list[Utterance] = []

    def keep(x: FloatArray, har: FloatArray, valid: int) -> FloatArray:
        found.append(Utterance(f"{utterance.name}_{len(found)}", x, har, utterance.style))
        return har

    walk(keep, utterance, geometry)
    return found


def walk(
    decode: Callable[[FloatArray, FloatArray, int], FloatArray], utterance: Utterance, geometry: Geometry
) -> FloatArray:
    """The board's walk over `utterance`."""
    window = geometry.window
    columns = (utterance.har.shape[-1] - 1) // utterance.frames
    walked: FloatArray = walk_spectrogram(
        decode, utterance.x, utterance.har, window.frames, window.left, window.right, columns
    )
    return walked


def decoded_by_windows(decode: Decode, utterance: Utterance, geometry: Geometry) -> FloatArray:
    """`utterance` through windows that `decode` decodes, each by itself."""
    return walk(lambda x, har, valid: decode(Utterance("", x, har, utterance.style)), utterance, geometry)


def feed_of(utterance: Utterance) -> dict[str, Array]:
    """A window as the engine `full` takes it."""
    return {LATENT: utterance.x, HARMONICS: utterance.har, STYLE: utterance.style}


def padded_feed_of(utterance: Utterance, width: int, config: GeneratorConfig) -> dict[str, Array]:
    """An utterance of at most `width` frames as the engine `short` takes it: zeros behind it, and its masks."""
    rates = (config.upsample_rates[0], config.columns_per_frame)
    mask, fine_mask = frame_masks(utterance.frames, width, rates)

    def padded(array: FloatArray, columns: int) -> FloatArray:
        return np.pad(array, ((0, 0), (0, 0), (0, columns - array.shape[-1])))

    x = padded(utterance.x, width)
    har = padded(utterance.har, config.columns_per_frame * width + 1)
    return {LATENT: x, HARMONICS: har, STYLE: utterance.style, MASK: mask, FINE_MASK: fine_mask}


def equality(gate: str, reference: FloatArray, measured: FloatArray, minimum_db: float, detail: str) -> Equality:
    """Two spectrograms that must agree."""
    return Equality(gate, {SPECTROGRAM: reference}, {SPECTROGRAM: measured}, minimum_db, detail)


def window_equality(original: Decode, exported: Decode, windows: Sequence[Utterance]) -> Equality:
    """The arithmetic as exported against the original, on each of `windows`."""
    return Equality(
        gate="fp64.window",
        reference={window.name: original(window) for window in windows},
        measured={window.name: exported(window) for window in windows},
        minimum_db=EXACT_DB,
        detail=f"the generator as it is exported, exact sines, against the original on {len(windows)} full windows",
    )


def padded_equality(
    original: Decode, masked: Callable[[Mapping[str, Array]], FloatArray], feeds: Sequence[Fed]
) -> Equality:
    """Padded windows through the masked arithmetic, against the same frames decoded without padding."""
    names = [f"{utterance.frames} frames" for utterance, _ in feeds]
    references = [original(utterance) for utterance, _ in feeds]
    measured = [masked(feed) for _, feed in feeds]
    cut = [found[..., : owed.shape[-1]] for found, owed in zip(measured, references, strict=True)]
    return Equality(
        gate="fp64.padded",
        reference=dict(zip(names, references, strict=True)),
        measured=dict(zip(names, cut, strict=True)),
        minimum_db=EXACT_DB,
        detail=f"padded windows of {', '.join(names)}, exact sines, against the original without padding",
    )


def expectation(original: Decode, name: str, feeds: Sequence[Fed], form: Form) -> Expectation:
    """The finished graph against the original on each of `feeds`."""
    return Expectation(
        f"fp32.finished_{name}",
        tuple((feed, {SPECTROGRAM: original(utterance)}) for utterance, feed in feeds),
        FINISHED_DB[form],
        f"the finished graph ({form.value} sines) against the original",
    )


def stitched(whole: FloatArray, windowed: FloatArray) -> Measurement:
    """What windows of their own statistics are of the whole decode."""
    return Measurement(name=STITCHED, measured=snr_db(whole, windowed), unit="dB", reason=_STITCHED_REASON)


def context_figure(whole: FloatArray, frozen: FloatArray, geometry: Geometry) -> Measurement:
    """What a context narrower than the receptive field loses; a gate could only refuse what the user asked for."""
    frames = geometry.window.left
    reason = f"a context of {frames} frames is less than the {geometry.seen} that a frame sees, as was asked for"
    return Measurement(name="fp64.context", measured=snr_db(whole, frozen), unit="dB", reason=reason)
