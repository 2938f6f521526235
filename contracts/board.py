"""What a probe on a board found of one engine, as its manifest keeps it (`board`).

`rknn-tts verify` writes it, of a result that `python -m rknn_tts_runtime probe` signed off. The verdicts that it
changed stand in it as they were before, so that another probe can take its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.verdicts import Verdict


@dataclass(frozen=True)
class BoardOutput:
    """An output against what was expected: the worst of all feeds.

    Attributes:
        name: the output.
        snr_db: its signal-to-noise ratio in dB; None where it could not be compared.
        bound_db: the least that passes.
        max_abs: the largest difference of two elements; None where they could not be compared.
    """

    name: str
    snr_db: float | None
    bound_db: float
    max_abs: float | None


@dataclass(frozen=True)
class BoardMemory:
    """What one loaded engine maps, as the driver told: weights, and tensors between layers, in bytes."""

    weight_bytes: int
    internal_bytes: int


@dataclass(frozen=True)
class BoardConditions:
    """What the figures were taken under; None of what the board did not tell.

    Attributes:
        soc: the chip.
        model: the device tree's model of the board.
        kernel: its release.
        governor: of the NPU's clock.
        least_hz, most_hz: the NPU's clock while cases ran.
        core_mask: the NPU cores that the driver granted.
        api: version of librknnrt.
        driver: version of the kernel's driver.
    """

    soc: str | None
    model: str | None
    kernel: str | None
    governor: str | None
    least_hz: int | None
    most_hz: int | None
    core_mask: str | None
    api: str | None
    driver: str | None


@dataclass(frozen=True)
class BoardCase:
    """One case of the probe.

    Attributes:
        name: its name in the kit.
        kind: `engine`, `operator` or `regtask`.
        what: a sentence: what it shows.
        passed: whether every output reached its bound.
        ms: the median time of a run; None where it did not run.
        outputs: its outputs; empty where it did not run.
        problem: why it did not run, or what could not be compared; "" where figures decide.
        proves: the verdicts that it decides, by name.
    """

    name: str
    kind: str
    what: str
    passed: bool
    ms: float | None
    outputs: tuple[BoardOutput, ...]
    problem: str
    proves: tuple[str, ...]

    @property
    def worst(self) -> BoardOutput | None:
        """The output that decides: one that could not be compared, else the least above its bound; None without any."""
        return min(self.outputs, key=_margin_db, default=None)


@dataclass(frozen=True)
class Board:
    """What a probe found of one engine.

    Attributes:
        ms: the median time of a run of the engine itself; None where it did not run.
        least_ms: the least.
        repeats: how many runs were timed.
        outputs: its outputs; empty where it did not run.
        memory: what it maps; None where the driver did not tell.
        conditions: what the figures were taken under.
        warnings: where those are not the reference's, as sentences.
        cases: everything that the kit had run.
        before: the verdicts that the cases decide, by name, as they were before.
        date: when it ran (UTC, ISO 8601).
        by: who signed it off.
        kit_sha256: the digest of the kit.
        probe_sha256: the digest that the result was signed off with.
    """

    ms: float | None
    least_ms: float | None
    repeats: int
    outputs: tuple[BoardOutput, ...]
    memory: BoardMemory | None
    conditions: BoardConditions
    warnings: tuple[str, ...]
    cases: tuple[BoardCase, ...]
    before: dict[str, Verdict]
    date: str
    by: str
    kit_sha256: str
    probe_sha256: str


def _margin_db(output: BoardOutput) -> float:
    return float("-inf") if output.snr_db is None else output.snr_db - output.bound_db
