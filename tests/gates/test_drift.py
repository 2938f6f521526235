from __future__ import annotations

import math

import pytest

from contracts.verdicts import Measurement, Status, Verdict
from gates.drift import drifts_percent, judge_drift


def test_drifts_are_signed_shares_of_what_is_owed() -> None:
    assert drifts_percent([100, 200, 50], [107, 150, 50]) == pytest.approx([7.0, -25.0, 0.0])


@pytest.mark.parametrize(
    ("measured", "status"),
    [
        ([107, 200], Status.PASSED),  # 7 % on the dot
        ([93, 200], Status.PASSED),
        ([107.1, 200], Status.FAILED),
        ([100, 185], Status.FAILED),  # 7.5 % short
        ([math.nan, 200], Status.FAILED),
        ([100, math.nan], Status.FAILED),
        ([100], Status.FAILED),
        ([], Status.FAILED),
    ],
)
def test_sentence_that_drifts_most_decides(measured: list[float], status: Status) -> None:
    verdict = judge_drift([100, 200], measured, 7.0, "the sum of frames")
    assert isinstance(verdict, Verdict)
    assert verdict.status is status


def test_verdict_tells_every_sentence_with_its_sign() -> None:
    verdict = judge_drift([100, 200], [107, 150], 7.0, "the sum of frames")
    assert isinstance(verdict, Verdict)
    assert verdict.measured == 25.0
    assert "+7.00, -25.00" in verdict.detail


def test_drift_without_a_bound_is_a_measurement() -> None:
    figure = judge_drift([100, 200], [121, 200], None, "the sum of frames, which grows")
    assert isinstance(figure, Measurement)
    assert (figure.measured, figure.unit) == (21.0, "%")
    assert "which grows" in figure.reason


@pytest.mark.parametrize(
    ("owed", "measured"), [([0.0], [0.0]), ([100.0], [math.nan]), ([100.0, 100.0], [100.0, math.nan]), ([], [])]
)
def test_drift_that_is_no_number_fails_even_without_a_bound(owed: list[float], measured: list[float]) -> None:
    verdict = judge_drift(owed, measured, None, "the sum of frames")
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.FAILED
