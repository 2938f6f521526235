"""What running a kit came to: a JSON of the schema "rknn-tts/probe/1", signed off by whoever ran it.

`rknn-tts verify` takes it back to the PC. The sign-off is a name, a time and a digest over all the rest. The digest
shows that a result was changed by hand or damaged on its way; it is no signature, for there is no secret in it.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from rknn_tts_runtime.probing.comparison import OutputFigure
from rknn_tts_runtime.probing.kit import Subject
from rknn_tts_runtime.probing.serial import as_data, digest_of, text_of

RESULT_SCHEMA = "rknn-tts/probe/1"

BOARD_BACKEND = "librknnrt"
"""The backend whose results tell of a board."""

UNNAMED = "unnamed"
"""Who signs off where nobody says."""


@dataclass(frozen=True)
class Clock:
    """The NPU's clock in Hz while cases ran, as the kernel told: the least and the most that was seen."""

    least_hz: int
    most_hz: int


@dataclass(frozen=True)
class Conditions:
    """What figures were taken under; None of what the system does not tell.

    Attributes:
        date: UTC, ISO 8601, when it began.
        soc: the chip.
        board: the device tree's model.
        kernel: its release.
        governor: of the NPU's clock.
        idle_hz: the NPU's clock before anything ran.
        clock: while cases ran.
        highest_hz: the highest that the NPU's clock can be.
        python, numpy, runtime: versions.
    """

    date: str
    soc: str | None
    board: str | None
    kernel: str | None
    governor: str | None
    idle_hz: int | None
    clock: Clock | None
    highest_hz: int | None
    python: str
    numpy: str
    runtime: str


@dataclass(frozen=True)
class CaseMemory:
    """What a case's engine maps, in bytes; `measured` where the driver told it."""

    weight_bytes: int
    internal_bytes: int
    measured: bool


@dataclass(frozen=True)
class CaseResult:
    """One case.

    Attributes:
        name, kind, what, proves: as in the kit.
        engine_sha256: the digest of its engine.
        passed: whether every output of every feed reached its bound.
        problem: why it has no figures, as a sentence: it could not be loaded or run; "" where it has.
        outputs: by output, the worst of all feeds; empty where it was not run.
        feeds: how many.
        ms, least_ms: the median and the least time of a run, in ms: of `repeats` of the first feed, behind one run that
            is not counted.
        repeats: how many runs were timed.
        core_mask: the NPU cores that the driver granted; None where the backend has none.
        memory: what its engine maps; None where nothing tells.
    """

    name: str
    kind: str
    what: str
    proves: tuple[str, ...]
    engine_sha256: str
    passed: bool
    problem: str
    outputs: tuple[OutputFigure, ...]
    feeds: int
    ms: float | None
    least_ms: float | None
    repeats: int
    core_mask: str | None
    memory: CaseMemory | None


@dataclass(frozen=True)
class SignOff:
    """Who ran it, when it was done (UTC, ISO 8601), and the digest over all the rest."""

    by: str
    at: str
    sha256: str


@dataclass(frozen=True)
class ProbeResult:
    """What running a kit came to.

    Attributes:
        kit_sha256: the digest of the kit's `probe.json`, and by the digests in it of the whole kit.
        subject: the engine that the kit is about.
        backend: "librknnrt" or "onnx".
        versions: of what ran the engines.
        conditions: what the figures were taken under.
        warnings: where those are not what the reference's figures were taken under.
        cases: in the order of the kit.
        signed_off: by whom; None before that.
    """

    kit_sha256: str
    subject: Subject
    backend: str
    versions: dict[str, str]
    conditions: Conditions
    warnings: tuple[str, ...]
    cases: tuple[CaseResult, ...]
    signed_off: SignOff | None = None
    schema: str = RESULT_SCHEMA

    @property
    def passed(self) -> bool:
        """Whether every case did."""
        return all(case.passed for case in self.cases)


def signed_off(result: ProbeResult, by: str, at: str) -> ProbeResult:
    """`result`, signed off by `by` at the time `at`."""
    unsigned = dataclasses.replace(result, signed_off=SignOff(by, at, ""))
    digest = sign_off_digest(as_data(unsigned))
    return dataclasses.replace(result, signed_off=SignOff(by, at, digest))


def sign_off_digest(data: dict[str, Any]) -> str:
    """The digest that the JSON data of a result must state under `signed_off.sha256`: over all but that."""
    sign_off = {key: value for key, value in data["signed_off"].items() if key != "sha256"}
    return digest_of({**data, "signed_off": sign_off})


def result_text(result: ProbeResult) -> str:
    """The text of the result's file."""
    return text_of(as_data(result))
