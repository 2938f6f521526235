"""Judges the toolkit's simulator: its outputs on several windows against onnxruntime's, or the original's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.verdicts import Verdict, failure
from gates.padding import without_padding
from gates.snr import compare_outputs, verdict_of, worst

GATE = "simulator"

Outputs = Mapping[str, NDArray[Any]]


def judge_simulator(
    references: Sequence[Outputs], outputs: Sequence[Outputs], threshold_db: float, against: str = "onnxruntime"
) -> list[Verdict]:
    """Verdict on the simulator's outputs: the worst window decides, the mean is told.

    Args:
        references: what each window should give, by output name.
        outputs: what the simulator gave, in the same order. None at all, or fewer or more windows, fails.
        threshold_db: the least signal-to-noise ratio of the worst window, in dB.
        against: where the references come from, for the sentence.
    """
    if not outputs or not references:
        missing = "outputs of the simulator" if references else "reference outputs"
        return [failure(GATE, f"it could not be judged: there are no {missing}", unit="dB")]
    if len(outputs) != len(references):
        return [failure(GATE, f"{len(outputs)} windows came back instead of {len(references)}", unit="dB")]
    several = len(references) > 1
    comparisons = [
        compare_outputs(reference, output).at(f"window {number}" if several else "")
        for number, (reference, output) in enumerate(zip(references, outputs, strict=True), start=1)
    ]
    figures = [item.snr_db for item in comparisons]
    detail = f"the simulator against {against} on one window"
    if several:
        mean = math.nan if any(item.problem for item in comparisons) else float(np.mean(figures))
        detail = f"the simulator against {against}, the worst of {len(figures)} windows; their mean is {mean:.1f} dB"
    return [verdict_of(GATE, worst(comparisons), threshold_db, detail)]


def judge_simulator_by_original(
    originals: Sequence[Outputs], outputs: Sequence[Outputs], threshold_db: float
) -> list[Verdict]:
    """Verdict on the simulator's outputs against what the unpatched original gives for each window.

    Args:
        originals: as the references of `judge_simulator`, but for axes of size 1, and that the last one may be shorter
            than the simulator's, whose rest is padding then.
        outputs: what the simulator gave.
        threshold_db: the least ratio.
    """
    # A window that has no original is left as it is, for the count to tell.
    by_window = [*originals, *[{}] * len(outputs)]
    cut = [without_padding(output, original) for output, original in zip(outputs, by_window, strict=False)]
    return judge_simulator(originals, cut, threshold_db, "the unpatched original")
