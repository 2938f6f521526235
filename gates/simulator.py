"""Judges the toolkit's simulator: its outputs on several windows against onnxruntime's, or the original's.

One verdict on all outputs, of which the worst decides, and one more on each output that has a bound of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.thresholds import SIMULATOR
from contracts.verdicts import Verdict, failure
from gates.padding import without_padding
from gates.snr import compare_outputs, verdict_of, worst

GATE = SIMULATOR

BY_ONNXRUNTIME, BY_ORIGINAL = "onnxruntime", "the unpatched original"
"""Where references come from, for sentences."""

Outputs = Mapping[str, NDArray[Any]]


NO_OWN: Mapping[str, float] = MappingProxyType({})


def judge_simulator(
    references: Sequence[Outputs],
    outputs: Sequence[Outputs],
    threshold_db: float,
    against: str = BY_ONNXRUNTIME,
    own_db: Mapping[str, float] = NO_OWN,
) -> list[Verdict]:
    """Verdicts on the simulator's outputs: the worst window decides, the mean is told.

    Args:
        references: what each window should give, by output name.
        outputs: what the simulator gave, in the same order. None at all, or fewer or more windows, fails.
        threshold_db: the least signal-to-noise ratio of the worst window, in dB.
        against: where the references come from, for the sentence.
        own_db: by name, the least ratio of each output that is judged alone, under the gate `simulator.NAME`; one that
            there is not fails. `threshold_db` is that of all others.
    """
    if not outputs or not references:
        missing = "outputs of the simulator" if references else "reference outputs"
        return [failure(GATE, f"it could not be judged: there are no {missing}", unit="dB")]
    if len(outputs) != len(references):
        return [failure(GATE, f"{len(outputs)} windows came back instead of {len(references)}", unit="dB")]
    windows = list(zip(references, outputs, strict=True))
    verdicts = []
    for name, least_db in own_db.items():
        alone = [(_only(reference, {name}), _only(output, {name})) for reference, output in windows]
        verdicts.append(_judge(f"{GATE}.{name}", alone, least_db, against))
    others = {name for window in windows for side in window for name in side} - set(own_db)
    if others or not own_db:
        shared = [(_only(reference, others), _only(output, others)) for reference, output in windows]
        verdicts.append(_judge(GATE, shared, threshold_db, against))
    return verdicts


def _only(outputs: Outputs, names: Set[str]) -> Outputs:
    return {name: array for name, array in outputs.items() if name in names}


def _judge(gate: str, windows: Sequence[tuple[Outputs, Outputs]], threshold_db: float, against: str) -> Verdict:
    """The verdict on the worst of `windows`, each what is owed and what came."""
    several = len(windows) > 1
    comparisons = [
        compare_outputs(reference, output).at(f"window {number}" if several else "")
        for number, (reference, output) in enumerate(windows, start=1)
    ]
    figures = [item.snr_db for item in comparisons]
    detail = f"the simulator against {against} on one window"
    if several:
        mean = math.nan if any(item.problem for item in comparisons) else float(np.mean(figures))
        detail = f"the simulator against {against}, the worst of {len(figures)} windows; their mean is {mean:.1f} dB"
    return verdict_of(gate, worst(comparisons), threshold_db, detail)


def judge_simulator_by_original(
    originals: Sequence[Outputs],
    outputs: Sequence[Outputs],
    threshold_db: float,
    own_db: Mapping[str, float] = NO_OWN,
) -> list[Verdict]:
    """Verdicts on the simulator's outputs against what the unpatched original gives for each window.

    Args:
        originals: as the references of `judge_simulator`, but for axes of size 1, and that the last one may be shorter
            than the simulator's, whose rest is padding then.
        outputs: what the simulator gave.
        threshold_db: the least ratio.
        own_db: as of `judge_simulator`.
    """
    # A window that has no original is left as it is, for the count to tell.
    by_window = [*originals, *[{}] * len(outputs)]
    cut = [without_padding(output, original) for output, original in zip(outputs, by_window, strict=False)]
    return judge_simulator(originals, cut, threshold_db, BY_ORIGINAL, own_db)
