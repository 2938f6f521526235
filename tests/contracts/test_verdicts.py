"""Comparisons that never pass on NaN."""

from __future__ import annotations

import math

import pytest

from contracts.verdicts import Status, Verdict, at_least, at_most, failed, failure, passed, unproven


@pytest.mark.parametrize(
    ("measured", "threshold", "least", "most"),
    [
        (2.0, 1.0, True, False),
        (1.0, 1.0, True, True),
        (0.5, 1.0, False, True),
        (math.inf, 1.0, True, False),
        (-math.inf, 1.0, False, True),
        (math.nan, 1.0, False, False),
        (1.0, math.nan, False, False),
        (math.nan, math.nan, False, False),
    ],
)
def test_at_least_and_at_most_fail_when_a_side_is_nan_or_beyond(
    measured: float, threshold: float, least: bool, most: bool
) -> None:
    for verdict, holds in (
        (at_least("g", measured, threshold, "dB"), least), (at_most("g", measured, threshold, "dB"), most)
    ):  # fmt: skip
        assert verdict.status is (Status.PASSED if holds else Status.FAILED)
        assert (verdict.gate, verdict.unit) == ("g", "dB")


def test_failed_keeps_only_failures_in_order_when_verdicts_are_mixed() -> None:
    verdicts = [passed("a"), failure("b", "why"), unproven("c", "board"), failure("d", "why")]
    assert [verdict.gate for verdict in failed(verdicts)] == ["b", "d"]


def test_verdict_refuses_positional_arguments() -> None:
    with pytest.raises(TypeError):
        Verdict("g", 1.0, 2.0, "dB", Status.PASSED)  # type: ignore[call-arg]  # that is what is tested
