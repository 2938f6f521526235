"""Numeric gates over windows: a fixed graph, walked by the runtime's own walk, against a full-length decode.

The reference is the unpatched original on the whole utterance, run elsewhere. An utterance of at least one window is
judged whole and by its worst interior window, because one bad window drowns in a long utterance. A shorter one has
padding where the full decode has the end of the tensor, and is only judged where the graph masks its decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.window_cover import CoverStep, Rung, RunRung, walk_cover

from contracts.contract import Trim, Window
from contracts.errors import RknnTtsError
from contracts.verdicts import Measurement, Verdict, failure
from gates.snr import Comparison, compare_arrays, verdict_of, worst

Samples = NDArray[Any]

SHORT_REASON = (
    "not a gate: an utterance shorter than its window ends in padding, whose own conv output stands where a full "
    "decode has the end of the tensor (the reference measures its last frames 20 to 40 dB off); a masked decoder "
    "removes this"
)


@dataclass(frozen=True)
class Thresholds:
    """The least signal-to-noise ratios that pass, in dB.

    Attributes:
        whole_db: the whole utterance, where it has at least one window.
        interior_db: its worst interior window.
        short_db: an utterance shorter than a window; None where the graph does not mask its decoder, so that the
            figure is a measurement.
    """

    whole_db: float
    interior_db: float
    short_db: float | None


@dataclass(frozen=True)
class WindowReport:
    """What the gates over one utterance concluded, and measured."""

    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...] = ()


def window_gates(
    gate: str,
    run: RunRung,
    arrays: Sequence[NDArray[np.float32]],
    reference: Samples,
    window: Window,
    thresholds: Thresholds,
    trim: Trim | None = None,
) -> WindowReport:
    """Judge the windowed decode of one utterance.

    Args:
        gate: the prefix of the gates' names: `GATE.whole`, `GATE.worst_interior`, `GATE.short`.
        run: decodes one window, as `rknn_tts_runtime.window_cover.walk_cover` calls it.
        arrays: what is cut into windows, frames along the last axis: the latent [1, C, N] and its mask [1, 1, N].
        reference: samples of the full-length decode, N * hop of them in any shape.
        window: geometry.
        thresholds: the bounds.
        trim: what of its context the graph drops.

    Returns:
        Verdicts for N >= W; for N < W one verdict or one measurement. What is owed and cannot run is a failed verdict.
    """
    trimmed = None if trim is None else trim.frames
    masked = thresholds.short_db is not None
    rung = Rung(window.frames, window.left, window.right, trimmed, masked, cost=1.0)
    try:
        walked = list(walk_cover([run], arrays, [rung], window.hop))
    except (RknnTtsError, BadInput, ValueError) as error:
        return WindowReport((failure(f"{gate}.whole", f"it could not run: {error}", unit="dB"),))
    steps = [step for step, _ in walked]
    frames = steps[-1].emit_stop
    samples = np.concatenate([part for _, part in walked])
    whole = compare_arrays(reference.reshape(-1), samples, "")
    if frames < window.frames:
        return _short(f"{gate}.short", whole, frames, window, thresholds.short_db)
    if whole.problem:
        return WindowReport((verdict_of(f"{gate}.whole", whole, thresholds.whole_db, _whole_text(steps)),))
    interior = [
        compare_arrays(_emitted(reference, step, window.hop), part, f"frames {step.emit_start} to {step.emit_stop - 1}")
        for step, part in walked
        if step.emit_start > 0 and step.emit_stop < frames
    ]
    verdicts = [verdict_of(f"{gate}.whole", whole, thresholds.whole_db, _whole_text(steps, len(interior)))]
    if interior:
        text = f"the worst of {len(interior)} interior windows"
        verdicts.append(verdict_of(f"{gate}.worst_interior", worst(interior), thresholds.interior_db, text))
    return WindowReport(tuple(verdicts))


def _short(gate: str, whole: Comparison, frames: int, window: Window, threshold_db: float | None) -> WindowReport:
    text = f"{frames} frames in one padded window of {window.frames}"
    if threshold_db is not None:
        return WindowReport((verdict_of(gate, whole, threshold_db, text),))
    if whole.problem:
        # No ratio at all (NaN, a wrong length) is not what the reason of the measurement excuses.
        return WindowReport((failure(gate, f"{text}: {whole.problem}", whole.snr_db, "dB"),))
    measurement = Measurement(name=gate, measured=whole.snr_db, unit="dB", reason=f"{text}; {SHORT_REASON}")
    return WindowReport((), (measurement,))


def _whole_text(steps: Sequence[CoverStep], interior: int | None = None) -> str:
    text = f"{steps[-1].emit_stop} frames in {len(steps)} window{'s' * (len(steps) != 1)}"
    return f"{text}, none of them interior" if interior == 0 else text


def _emitted(reference: Samples, step: CoverStep, hop: int) -> Samples:
    part: Samples = reference.reshape(-1)[step.emit_start * hop : step.emit_stop * hop]
    return part
