"""What the gates compare CosyVoice2's vocoder with: the module in the reference's arithmetic, on drawn frames.

host.source        the host half's source and spectrogram against its module's
fp32.export        the exported ONNX against the module
fp32.interior      windows against the whole decode, where they hold all that a column depends on
fp32.finished      the finished graph, sines rewritten, against the module
sine.reach         how far the sines' arguments go on other frames, against how far they are folded
windows.streamed   a stream in these windows, with what is faded over, against the whole decode: a measurement
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rknn_tts_runtime import VocoderStream, vocoder_samples

from contracts.verdicts import Measurement
from converters.cosyvoice2.hift_drawn import FloatArray, drawn_noise, drawn_pitch
from converters.cosyvoice2.hift_opening import OTHER_SEED, PROOF_SEED, HiftOpening, Seam
from converters.measured_snr import snr_db
from converters.sine_reach import reach_verdict
from converters.stages import Array, Equality, Evidence, Expectation, Session
from models.cosyvoice2.hift_config import CACHE_FRAMES, COLUMNS, HOP, receptive_frames
from models.cosyvoice2.hift_graph import HAR, MEL, SOURCE, SPECTROGRAM, TURNS
from models.cosyvoice2.hift_runs import excited
from surgery.sine_forms import FOLDED, Form

GRAPH_DB = 115.0
"""Of one arithmetic in two programs: torch and onnxruntime sum in another order."""

HOST_DB = 100.0
"""The same for the host half, whose sines have arguments of some hundred turns."""

INTERIOR_DB = 100.0
"""Of columns whose receptive field is in the window: the same products in convolutions of another length."""

FINISHED_DB = {
    Form.SOFT: 80.0,
    Form.TRIANGLE: 85.0,
    Form.FINE: 85.0,
    Form.FLOOR: 85.0,
    Form.EXACT: GRAPH_DB,
    Form.CLIP: 15.0,
}
"""Of the finished graph, by the form of its sines. Clip is wrong past one wave, whatever else is right."""

STREAMED = "windows.streamed"
_STREAMED_REASON = (
    "a frame depends on {field} frames on each side, and a stream decodes {overlap} again, as upstream does: what that "
    "loses is in its audio too"
)


def evidence_of(opening: HiftOpening, width: int, exported: Session, reaches: Sequence[FloatArray]) -> Evidence:
    """What the gates of the engine of `width` frames compare; `exported` is its graph before any pass, opened."""
    runs = tuple((opening.feed(width, seed), owed(opening, width, seed)) for seed in (PROOF_SEED, OTHER_SEED))
    folded = opening.form in FOLDED
    return Evidence(
        equalities=(host_equality(opening), _export(exported, runs[0]), *interior_equalities(opening, width, exported)),
        expectations=(
            Expectation(
                "fp32.finished",
                runs,
                FINISHED_DB[opening.form],
                f"the finished graph ({opening.form.value} sines) against the module",
            ),
        ),
        verdicts=(reach_verdict(reaches, opening.other_arguments, "frames"),) if folded else (),
        measurements=(streamed(opening),) if width == max(opening.widths) else (),
    )


def owed(opening: HiftOpening, width: int, seed: int = PROOF_SEED) -> dict[str, Array]:
    """What the module gives for `opening.feed`."""
    seam = opening.part(0, width) if seed == PROOF_SEED else opening.seam(width, seed)
    return {SPECTROGRAM: opening.vocoded(seam)}


def host_equality(opening: HiftOpening) -> Equality:
    """The host half in onnxruntime against its module, in the middle of a stream."""
    frames = max(opening.widths)
    pitch, noise = drawn_pitch(frames, OTHER_SEED), drawn_noise(frames, OTHER_SEED)
    _, source, turns = opening.excited(drawn_pitch(frames, PROOF_SEED), drawn_noise(frames, PROOF_SEED))
    given = (pitch, noise, turns[:, -1], source[:, -HOP:])
    reference = dict(zip((HAR, SOURCE, TURNS), excited(opening.excitation, *given), strict=True))
    measured = dict(zip((HAR, SOURCE, TURNS), opening.excited(*given), strict=True))
    detail = f"the host half in onnxruntime against its module, {frames} frames that go on from others"
    return Equality("host.source", reference, measured, HOST_DB, detail)


def _export(exported: Session, run: tuple[Mapping[str, Array], Mapping[str, Array]]) -> Equality:
    detail = "the exported ONNX in onnxruntime, exact sines, half of them counted in half turns, against the module"
    return Equality("fp32.export", run[1], exported(run[0]), GRAPH_DB, detail)


def interior_equalities(opening: HiftOpening, width: int, exported: Session) -> tuple[Equality, ...]:
    """Windows at both ends and amid, each where it holds what its columns depend on; none where it never does."""
    field, frames = receptive_frames(), opening.long.mel.shape[-1]
    if width <= 2 * field:
        return ()
    starts = sorted({0, (frames - width) // 2, frames - width})
    reference: dict[str, Array] = {}
    measured: dict[str, Array] = {}
    for start in starts:
        seam = opening.part(start, width)
        got = exported({MEL: seam.mel, HAR: seam.har})[SPECTROGRAM]
        first = 0 if start == 0 else COLUMNS * field
        last = COLUMNS * width + 1 if start == frames - width else COLUMNS * (width - field)
        name = f"frame {start}"
        measured[name] = got[..., first:last]
        reference[name] = opening.whole[..., COLUMNS * start + first : COLUMNS * start + last]
    detail = (
        f"windows at frames {', '.join(map(str, starts))} of {frames} against the whole decode, {field} frames from "
        "each end that is not the stretch's own"
    )
    return (Equality("fp32.interior", reference, measured, INTERIOR_DB, detail),)


def streamed(opening: HiftOpening) -> Measurement:
    """What a stream in windows is of the whole decode, both by the module, with the source of one pitch and noise."""
    frames, widths = opening.long.mel.shape[-1], opening.widths
    pitch, noise = drawn_pitch(frames, PROOF_SEED), drawn_noise(frames, PROOF_SEED)
    place = 0  # where the chunk that is pushed ends, and so does its window

    def run_pitch(mel: FloatArray) -> FloatArray:
        width = mel.shape[-1]
        return _behind(pitch, max(0, place - width), width)

    def run_source(f0: FloatArray, before: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        width = f0.shape[1]
        drawn = _behind(noise, HOP * max(0, place - width), HOP * width)
        return opening.excited(f0, drawn, before, known)

    stream = VocoderStream(run_pitch, run_source, lambda mel, har: opening.vocoded(Seam(mel, har)), widths)
    samples = []
    while place < frames:
        start, place = place, min(frames, place + (max(widths) - CACHE_FRAMES if place else min(widths)))
        samples.append(stream.push(opening.long.mel[..., start:place], last=place == frames))
    whole = vocoder_samples(opening.whole)
    reason = _STREAMED_REASON.format(field=receptive_frames(), overlap=CACHE_FRAMES)
    return Measurement(name=STREAMED, measured=snr_db(whole, np.concatenate(samples)), unit="dB", reason=reason)


def _behind(array: FloatArray, start: int, count: int) -> FloatArray:
    """`count` steps of the second axis from `start` on, zeros where it ends before."""
    part = array[:, start : start + count]
    return np.pad(part, ((0, 0), (0, count - part.shape[1]), *[(0, 0)] * (array.ndim - 2)))
