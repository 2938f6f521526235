"""Verdicts of gates, and figures that decide nothing.

A verdict that cannot be computed is a failure with its reason, never a pass: `at_least` and `at_most` fail on NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    """What a gate concluded. `UNPROVEN`: only a board can tell; loud, and not a failure."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One gate's conclusion.

    Attributes:
        gate: the gate's name, `room.what` (`fp32.noise_several_windows`, `log.regtask`).
        measured: the figure that was compared, or a text where the gate looks at names, or None.
        threshold: the bound it was compared with, in the same unit, or None.
        unit: the unit of both ("dB", "nodes", ...), or "".
        status: passed, failed or unproven.
        detail: one sentence: what was measured on what; for a failure also the reason and the remedy.
    """

    gate: str
    measured: float | str | None = None
    threshold: float | str | None = None
    unit: str = ""
    status: Status
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A figure that is reported and decides nothing, with the reason why it is no gate."""

    name: str
    measured: float | str | None
    unit: str
    reason: str


def at_least(gate: str, measured: float, threshold: float, unit: str, detail: str = "") -> Verdict:
    """Passed if `measured >= threshold`; failed otherwise, and for NaN on either side."""
    return _compared(gate, measured, threshold, unit, detail, holds=measured >= threshold)


def at_most(gate: str, measured: float, threshold: float, unit: str, detail: str = "") -> Verdict:
    """Passed if `measured <= threshold`; failed otherwise, and for NaN on either side."""
    return _compared(gate, measured, threshold, unit, detail, holds=measured <= threshold)


def passed(gate: str, detail: str = "", measured: float | str | None = None, unit: str = "") -> Verdict:
    """A verdict of a gate that looked and found nothing wrong."""
    return Verdict(gate=gate, measured=measured, unit=unit, status=Status.PASSED, detail=detail)


def failure(gate: str, detail: str, measured: float | str | None = None, unit: str = "") -> Verdict:
    """A failed verdict: a gate found something wrong, or was owed and could not run."""
    return Verdict(gate=gate, measured=measured, unit=unit, status=Status.FAILED, detail=detail)


def unproven(gate: str, detail: str, measured: float | str | None = None, unit: str = "") -> Verdict:
    """A verdict that only a board can give."""
    return Verdict(gate=gate, measured=measured, unit=unit, status=Status.UNPROVEN, detail=detail)


def failed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The failed ones among `verdicts`."""
    return [verdict for verdict in verdicts if verdict.status is Status.FAILED]


def _compared(gate: str, measured: float, threshold: float, unit: str, detail: str, *, holds: bool) -> Verdict:
    status = Status.PASSED if holds else Status.FAILED
    return Verdict(
        gate=gate, measured=float(measured), threshold=float(threshold), unit=unit, status=status, detail=detail
    )
