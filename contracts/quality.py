"""Figures that say how an engine sounds or decides, as a stage declares them beside its signal-to-noise ratio.

`gates.quality_figures` computes them; `gates.quality` judges the simulator's outputs by them, under the gate
`quality.FIGURE`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FigureKind:
    """What a figure is.

    Attributes:
        unit: "dB", "%", or "" of a ratio and of mel values, which are natural logarithms.
        larger_is_better: whether a bound is the least that passes, or the most.
        mean: whether its values (of runs, or of the vectors in them) are averaged; else the worst decides.
        summary: what it is, a clause.
    """

    unit: str
    larger_is_better: bool
    mean: bool
    summary: str


FIGURES: Mapping[str, FigureKind] = {
    "mel_l1": FigureKind("", False, False, "the mean absolute difference of log mel values"),
    "mel_l1_relative": FigureKind("", False, False, "the sum of absolute differences as a share of the mel values'"),
    "mel_cosine": FigureKind("", True, False, "the cosine of the angle between whole spectrograms"),
    "log_spectral_distance": FigureKind("dB", False, False, "the log-spectral distance of the waveforms"),
    "logits_cosine": FigureKind("", True, False, "the cosine of the angle between the logits of a position"),
    "logits_cosine_mean": FigureKind("", True, True, "the mean cosine of the angle between the logits of a position"),
    "logits_top1": FigureKind("%", True, True, "the positions whose largest logit is the same"),
    "embedding_cosine": FigureKind("", True, False, "the cosine of the angle between embeddings"),
}
"""Every figure, by name."""

WAVEFORM_FIGURE = "log_spectral_distance"
"""The figure that is one of a waveform, and may be taken behind an inverse transform."""


@dataclass(frozen=True)
class Istft:
    """The host's inverse transform that makes a waveform of an output, by `rknn_tts_runtime.istft`.

    Attributes:
        n_fft: size of the transform in samples; the output has n_fft + 2 rows.
        hop: samples from a column to the next.
        largest_magnitude: what the host cuts the magnitudes at; None where it does not.
    """

    n_fft: int
    hop: int
    largest_magnitude: float | None = None


@dataclass(frozen=True)
class Quality:
    """One figure of one output.

    Attributes:
        figure: its name among `FIGURES`.
        output: the engine's output; [B, C, .., T] with C the bins or the vocabulary, or [N, C] or [C] without steps.
        bound: the most, or the least, that passes; None: the figure is a measurement.
        mask: an input [B, 1, S] or [1, 1, S] that is 0 at frames of padding, which count for nothing: T is S or a
            multiple of it. None: every frame counts, but for what an original leaves out (`gates.padding`).
        istft: what makes a waveform of the output; None where the output is one.
        remark: what a person should know of the figure here, a clause; may be empty.
    """

    figure: str
    output: str
    bound: float | None = None
    mask: str | None = None
    istft: Istft | None = None
    remark: str = ""


def quality_fault(declared: Sequence[Quality], inputs: Collection[str], outputs: Collection[str]) -> str | None:
    """What makes figures that were read from a file unfit to be judged; None where nothing does.

    Args:
        declared: the figures.
        inputs: names of the engine's inputs.
        outputs: names of its outputs.
    """
    for item in declared:
        what = f"its quality figure {item.figure!r:.60}"
        if item.figure not in FIGURES:
            return f"{what} is none of {', '.join(FIGURES)}"
        if item.output not in outputs:
            return f"{what} is of {item.output!r:.60}, which is no output"
        if item.mask is not None and item.mask not in inputs:
            return f"{what} has the mask {item.mask!r:.60}, which is no input"
        if item.bound is not None and not math.isfinite(item.bound):
            return f"{what} has the bound {item.bound}"
        if item.istft is not None and (fault := _istft_fault(item.figure, item.istft)) is not None:
            return f"{what} {fault}"
    for (figure, output), count in Counter((item.figure, item.output) for item in declared).items():
        if count > 1:
            return f"its quality figure {figure} of {output!r:.60} is stated {count} times"
    return None


def _istft_fault(figure: str, istft: Istft) -> str | None:
    if figure != WAVEFORM_FIGURE:
        return "is none of a waveform, and has an inverse transform"
    n_fft, hop, largest = istft.n_fft, istft.hop, istft.largest_magnitude
    if n_fft < 2 or n_fft % 2 or hop < 1 or n_fft % hop or 2 * hop > n_fft:
        return f"has an inverse transform of {n_fft} samples by {hop}: a hop divides an even size at least twice"
    if largest is not None and not 0 < largest < math.inf:
        return f"cuts magnitudes at {largest}"
    return None
