"""Judges how far a sum drifts between fp32 and fp16, sentence by sentence: what a signal-to-noise ratio hides.

Every frame may agree to 60 dB and the whole sentence be a quarter shorter, because durations are rounded up and small
errors go one way (reference, Piper duration encoder).
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.verdicts import Measurement, Verdict, at_most, failure

GATE = "simulator.drift"
UNIT = "%"
PERCENT = 100.0


def drifts_percent(owed: Sequence[float], measured: Sequence[float]) -> list[float]:
    """By how much each of `measured` differs from what is `owed`, in percent of that; longer is positive.

    Raises:
        ValueError: an owed sum is not above 0, or there is another number of sums.
    """
    if any(not total > 0 for total in owed):
        raise ValueError("a sum in fp32 is not above 0, so nothing is a share of it")
    return [(b - a) * PERCENT / a for a, b in zip(owed, measured, strict=True)]


def judge_drift(
    owed: Sequence[float], measured: Sequence[float], most_percent: float | None, what: str
) -> Verdict | Measurement:
    """A verdict on the sentence that drifts most; a measurement where no bound is stated.

    Args:
        owed: the sum of each sentence in fp32.
        measured: the same in the simulator.
        most_percent: the bound.
        what: what is summed, and what a person should know of it.
    """
    if not owed or len(owed) != len(measured):
        return failure(GATE, f"it could not be judged: {len(measured)} sentences came of {len(owed)}", unit=UNIT)
    try:
        each = drifts_percent(owed, measured)
    except ValueError as error:
        return failure(GATE, f"it could not be judged: {error}", unit=UNIT)
    worst = max(each, key=lambda percent: (percent != percent, abs(percent)))  # NaN is the worst of all
    figures = ", ".join(f"{percent:+.2f}" for percent in each)
    detail = f"{what}; {len(each)} sentence{'s' * (len(each) > 1)} of {min(owed):g} to {max(owed):g} in fp32: {figures}"
    if most_percent is not None:
        return at_most(GATE, abs(worst), most_percent, UNIT, detail)
    if worst != worst:
        return failure(GATE, f"{detail}: no number", unit=UNIT)
    return Measurement(name=GATE, measured=round(abs(worst), 2), unit=UNIT, reason=detail)
