"""Judges the simulator's outputs by the figures that a stage declares (`contracts.quality`).

A figure with a bound is a verdict, `quality.FIGURE` (`quality.FIGURE.OUTPUT` where it is stated of several outputs),
one without is a measurement of that name. What cannot be compared fails, with a bound or without.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.istft import istft

from contracts.quality import FIGURES, WAVEFORM_FIGURE, FigureKind, Istft, Quality
from contracts.verdicts import Measurement, Verdict, at_least, at_most, failure, unproven
from gates.padding import without_padding
from gates.quality_figures import (
    FloatArray,
    log_spectral_distance,
    mel_l1,
    mel_l1_relative,
    row_cosines,
    same_largest,
    whole_cosine,
)
from gates.simulator import BY_ONNXRUNTIME, BY_ORIGINAL
from gates.snr import compare_arrays

Arrays = Mapping[str, NDArray[Any]]

PREFIX = "quality."

_FUNCTIONS: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], FloatArray]] = {
    "mel_l1": mel_l1,
    "mel_l1_relative": mel_l1_relative,
    "mel_cosine": whole_cosine,
    WAVEFORM_FIGURE: log_spectral_distance,
    "logits_cosine": row_cosines,
    "logits_cosine_mean": row_cosines,
    "logits_top1": same_largest,
    "embedding_cosine": row_cosines,
}


class _Incomparable(ValueError):
    """Why two outputs have no figure."""


def quality_names(declared: Sequence[Quality]) -> list[str]:
    """The name of each figure's gate or measurement."""
    times = Counter(item.figure for item in declared)
    return [f"{PREFIX}{item.figure}" + (f".{item.output}" * (times[item.figure] > 1)) for item in declared]


def judge_quality(
    declared: Sequence[Quality],
    feeds: Sequence[Arrays],
    references: Sequence[Arrays],
    outputs: Sequence[Arrays],
    by_original: bool = False,
) -> list[Verdict | Measurement]:
    """A verdict or a measurement for each figure that is declared.

    Args:
        declared: the figures.
        feeds: inputs of the runs, for masks.
        references: what each run should give, by output name.
        outputs: what it gave, in the same order.
        by_original: whether the references are what the unpatched original gives, whose last axis may be shorter: the
            rest is padding then (`gates.padding`); else they are onnxruntime's on the same graph.
    """
    return [
        _judge(name, item, feeds, references, outputs, by_original)
        for name, item in zip(quality_names(declared), declared, strict=True)
    ]


def unproven_quality(declared: Sequence[Quality], why: str) -> list[Verdict]:
    """The verdicts on figures that are owed where nothing was simulated; `why` is a sentence."""
    named = zip(quality_names(declared), declared, strict=True)
    return [unproven(name, why, unit=FIGURES[item.figure].unit) for name, item in named if item.bound is not None]


def _judge(
    name: str,
    item: Quality,
    feeds: Sequence[Arrays],
    references: Sequence[Arrays],
    outputs: Sequence[Arrays],
    by_original: bool,
) -> Verdict | Measurement:
    kind = FIGURES[item.figure]
    if not outputs or not len(feeds) == len(references) == len(outputs):
        text = f"it could not be judged: {len(outputs)} runs came back and {len(references)} of {len(feeds)} are owed"
        return failure(name, text, unit=kind.unit)
    values: list[float] = []
    for number, (feed, owed, got) in enumerate(zip(feeds, references, outputs, strict=True), start=1):
        try:
            values += [float(value) for value in _values(item, feed, owed, got, by_original)]
        except _Incomparable as error:
            return failure(
                name, f"it could not be judged: {error} (output '{item.output}', run {number})", unit=kind.unit
            )
    figure, told = _pooled(kind, values)
    remark = f"; {item.remark}" if item.remark else ""
    against = BY_ORIGINAL if by_original else BY_ONNXRUNTIME
    detail = f"{kind.summary}, of the output '{item.output}', the simulator against {against}, {told}{remark}"
    if not math.isfinite(figure):
        return failure(name, f"{detail}: no number", figure, kind.unit)
    if item.bound is not None:
        return (at_least if kind.larger_is_better else at_most)(name, figure, item.bound, kind.unit, detail)
    return Measurement(name=name, measured=figure, unit=kind.unit, reason=f"{detail}; no bound is stated")


def _pooled(kind: FigureKind, values: Sequence[float]) -> tuple[float, str]:
    """The figure over all values, and how it is one, a clause; a NaN among them is the worst of all."""
    mean = float(np.mean(values))
    worst = min(values) if kind.larger_is_better else max(values)
    worst = math.nan if math.isnan(mean) else worst
    if len(values) == 1:
        return worst, "one value"
    if kind.mean:
        return mean, f"the mean of {len(values)}; the worst of them is {worst:.6g}"
    return worst, f"the worst of {len(values)}; their mean is {mean:.6g}"


def _values(item: Quality, feed: Arrays, reference: Arrays, output: Arrays, by_original: bool) -> FloatArray:
    """The figure's values in one run."""
    for what, arrays in (("reference", reference), ("simulator", output)):
        if item.output not in arrays:
            raise _Incomparable(f"the {what} has no such output")
    owed, whole = np.asarray(reference[item.output]), np.asarray(output[item.output])
    got = without_padding({"": whole}, {"": owed})[""] if by_original else whole
    if owed.shape != got.shape:
        raise _Incomparable(f"shape {list(got.shape)} instead of {list(owed.shape)}")
    # A mask is of all steps: what an original gave of fewer is without padding already.
    mask = _mask(item.mask, feed) if item.mask is not None and got.size == whole.size else None
    rows = [_counted(side, mask) for side in (owed, got)]
    if problem := compare_arrays(rows[0], rows[1], "").problem:
        raise _Incomparable(problem)
    with np.errstate(over="ignore", invalid="ignore"):  # what becomes too large is no number, and told so
        if item.istft is not None:
            rows = [_wave(side, item.istft) for side in rows]
        return _FUNCTIONS[item.figure](rows[0], rows[1])


def _mask(name: str, feed: Arrays) -> NDArray[Any]:
    """The mask of a run as [B, S]."""
    if name not in feed:
        raise _Incomparable(f"the run has no mask '{name}'")
    mask = np.asarray(feed[name])
    if mask.ndim < 2 or mask.shape[-1] < 1 or mask.size != mask.shape[0] * mask.shape[-1]:
        raise _Incomparable(f"the mask '{name}' {list(mask.shape)} is not [B, 1, S]")
    return mask.reshape(mask.shape[0], -1)


def _counted(array: NDArray[Any], mask: NDArray[Any] | None) -> NDArray[Any]:
    """`array` [B, C, .., T] as rows [steps, C] of the steps that count."""
    if array.ndim < 2:
        return array.reshape(1, -1)
    rows = np.moveaxis(array, 1, -1)  # [B, .., T, C]
    if mask is None:
        return rows.reshape(-1, rows.shape[-1])
    batch, frames = mask.shape
    steps = array.shape[-1]
    if array.ndim < 3 or steps % frames or batch not in (1, array.shape[0]):
        raise _Incomparable(f"a mask of {list(mask.shape)} fits no {list(array.shape)}")
    kept = np.repeat(mask != 0, steps // frames, axis=1)
    between = rows.ndim - 3  # axes between the batch and the steps
    kept = np.broadcast_to(kept.reshape(batch, *(1,) * between, steps), rows.shape[:-1])
    return np.asarray(rows[kept])


def _wave(rows: NDArray[Any], made: Istft) -> NDArray[Any]:
    """The waveform of raw columns, given as rows [F, n_fft + 2]."""
    if rows.shape[1] != made.n_fft + 2 or rows.shape[0] < 2:
        raise _Incomparable(f"{rows.shape[0]} columns of {rows.shape[1]} rows are no spectrogram of {made.n_fft}")
    columns = np.array(rows.T, np.float32)[None]
    if made.largest_magnitude is not None:
        bins = made.n_fft // 2 + 1
        columns[:, :bins] = np.minimum(columns[:, :bins], np.float32(math.log(made.largest_magnitude)))
    return np.asarray(istft(columns, made.n_fft, made.hop))
