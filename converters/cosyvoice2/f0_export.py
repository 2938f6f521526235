"""One engine of CosyVoice2's predictor of pitch, and what the gates compare it with.

fp32.export        the exported ONNX against the module it was traced from
fp32.interior      windows against the whole stretch, where they hold all that a pitch depends on
fp32.finished      the finished graph against the module
windows.streamed   pitches of a stream in windows, both of whose ends see zeros, against the whole: a measurement
"""

from __future__ import annotations

import numpy as np

from contracts.contract import Contract, TensorSpec
from contracts.thresholds import SIMULATOR
from contracts.verdicts import Measurement
from converters.cosyvoice2.hift_drawn import FloatArray
from converters.cosyvoice2.hift_geometry import f0_stem, f0_window, width_of
from converters.cosyvoice2.hift_opening import OTHER_SEED, PROOF_SEED, HiftOpening
from converters.measured_snr import snr_db
from converters.stages import Array, Equality, Evidence, Expectation, Session, StageExport
from models.cosyvoice2.hift_config import CACHE_FRAMES, PITCH_FIELD
from models.cosyvoice2.hift_graph import MEL, PITCH, f0_shapes
from surgery.rewrite_interface_axes import rewrite_interface_axes

GRAPH_DB = 110.0
"""Of one arithmetic in two programs: torch and onnxruntime sum in another order."""

INTERIOR_DB = 100.0
"""Of frames whose receptive field is in the window."""

SIMULATOR_DB = 50.0
"""Least simulator SNR against the module."""

_STREAMED_REASON = (
    f"a pitch depends on {PITCH_FIELD} frames on each side, and a stream's chunk ends before them, as upstream's does"
)


def f0_export(opening: HiftOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    width = width_of(role)
    model = opening.f0_model(width)
    feed, other = ({MEL: opening.mel(width, seed)} for seed in (PROOF_SEED, OTHER_SEED))
    runs = tuple((each, {PITCH: opening.pitched(each[MEL])}) for each in (feed, other))

    def evidence() -> Evidence:
        exported = opening.known(model, "f0", width)
        return Evidence(
            equalities=(
                Equality(
                    "fp32.export",
                    runs[0][1],
                    exported(feed),
                    GRAPH_DB,
                    "the exported ONNX in onnxruntime against the torch module that it was traced from",
                ),
                _interior(opening, width, exported),
            ),
            expectations=(Expectation("fp32.finished", runs, GRAPH_DB, "the finished graph against the module"),),
            measurements=(streamed(opening),) if width == max(opening.widths) else (),
        )

    return StageExport(
        stem=f0_stem(role),
        contract=Contract(
            family="cosyvoice2",
            stage="f0",
            source=opening.file.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in f0_shapes(opening.config, width).items()),
            outputs=(TensorSpec(PITCH, ()),),  # its shape is read from the finished graph
            window=f0_window(width),
            thresholds={SIMULATOR: SIMULATOR_DB},
            role=role,
        ),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(feed,),
        padded_feeds=(),
        host=None,
        host_file="",
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=evidence,
        references=(runs[0][1],),
        session=lambda: opening.known(model, "f0", width),
        calibration=tuple({MEL: feed[MEL]} for feed in opening.calibration(width)),
    )


def _stretch(opening: HiftOpening) -> FloatArray:
    return opening.mel(2 * max(opening.widths) + min(opening.widths), PROOF_SEED)


def _interior(opening: HiftOpening, width: int, exported: Session) -> Equality:
    """Windows at both ends and amid, each where it holds what its pitches depend on."""
    mel = _stretch(opening)
    whole, frames = opening.pitched(mel), mel.shape[-1]
    starts = sorted({0, (frames - width) // 2, frames - width})
    reference: dict[str, Array] = {}
    measured: dict[str, Array] = {}
    for start in starts:
        first = 0 if start == 0 else PITCH_FIELD
        last = width if start == frames - width else width - PITCH_FIELD
        got = exported({MEL: mel[..., start : start + width]})[PITCH]
        measured[f"frame {start}"] = got[:, first:last]
        reference[f"frame {start}"] = whole[:, start + first : start + last]
    detail = (
        f"windows at frames {', '.join(map(str, starts))} of {frames} against the whole, {PITCH_FIELD} frames from "
        "each end that is not the stretch's own"
    )
    return Equality("fp32.interior", reference, measured, INTERIOR_DB, detail)


def streamed(opening: HiftOpening) -> Measurement:
    """What the pitches of a stream in windows are of the whole, by the module: each as the first window has it."""
    mel, widths = _stretch(opening), opening.widths
    whole, frames = opening.pitched(mel), mel.shape[-1]
    found: list[FloatArray] = []
    place = 0
    while place < frames:
        stop = min(frames, place + (max(widths) - CACHE_FRAMES if place else min(widths)))
        window = mel[..., max(0, place - CACHE_FRAMES) : stop]
        found.append(opening.pitched(window)[:, place - stop :])
        place = stop
    decibels = snr_db(whole, np.concatenate(found, axis=1))
    return Measurement(name="windows.streamed", measured=decibels, unit="dB", reason=_STREAMED_REASON)
