"""The catalogue of a farm, or of any folder of engines: every engine, its proof and cost, and whatever is not well.

What was measured (times, memory, nodes) stands in fields of its own, `measured`: all else is the same wherever and
whenever the same engines were made, so that two catalogues can be compared (farm.catalogue_diff).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from contracts.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from contracts.manifest import Aperture
from contracts.verdicts import Verdict
from farm.jobs import Unplanned

SCHEMA = "rknn-tts/catalogue/1"


class Fault(str, Enum):
    """What is wrong: how a job ended (farm.outcomes), or what was found afterwards."""

    REFUSED = "refused"
    FAILED = "failed"
    MEMORY = "memory"
    DISK = "disk"
    LOST = "lost"
    WAITING = "waiting"
    DAMAGED = "damaged"
    """A file is gone, is not what its manifest or its job says, or cannot be read."""
    DIFFERS = "differs"
    """It was made twice, and the bytes are not the same."""


@dataclass(frozen=True)
class VerdictCounts:
    """How many verdicts of each kind."""

    passed: int = 0
    failed: int = 0
    unproven: int = 0


@dataclass(frozen=True)
class EngineCost:
    """What a run of an engine costs, by its layer table: modelled, not measured on a board.

    Attributes:
        modelled_ms: milliseconds of a run.
        cycles: of its layers.
        rw_kb: what they read and write, in KB.
        layers: how many there are.
        cpu_layers: those of them on the CPU.
        unit: what a run emits, "frame" or "code"; None where its manifest has neither window nor step.
        emitted: how many of them.
        unit_ms: milliseconds for each of them.
        real_time_factor: seconds of a run for each second of audio that it emits, below 1 is faster than speech; None
            where no sample rate is stated.
    """

    modelled_ms: float
    cycles: int
    rw_kb: float
    layers: int
    cpu_layers: int
    unit: str | None = None
    emitted: int | None = None
    unit_ms: float | None = None
    real_time_factor: float | None = None


@dataclass(frozen=True)
class EngineMeasured:
    """What was measured where an engine was made, or where it ran; None of what nobody measured.

    Attributes:
        node: where its job ran.
        build_s, build_cpu_s: the toolkit's time on the clock, and of processors; of the build that made it, whenever
            that was.
        build_peak_bytes: its resident memory.
        board_ms: milliseconds of a run on a board (`rknn-tts verify`).
    """

    node: str | None = None
    build_s: float | None = None
    build_cpu_s: float | None = None
    build_peak_bytes: int | None = None
    board_ms: float | None = None


@dataclass(frozen=True)
class EngineEntry:
    """One engine.

    Attributes:
        family, stage, role: as its manifest says; the first two None of a foreign ONNX, the last where it has none.
        voice, width: as its job says; of a folder without jobs, where it stands in it, and "".
        language: of the voice (BCP 47); None where nothing says.
        target, toolkit, precision: what it was compiled for, by which version, to what ("fp16").
        path: its file, relative to the folder of the catalogue.
        sha256, bytes: its digest and size.
        onnx_sha256: of the graph that it was compiled from.
        source, source_sha256, source_kind: the checkpoint (contracts.contract.Source).
        verdicts: how many it has.
        notable: those that failed, and those that only a board can tell.
        simulator_db: the least ratio that the simulator reached, in dB; None where it did not run.
        cost: what it costs; None where its manifest has no layer table.
        aperture: what it takes of the NPU's address space.
        page: its page, relative to the folder of the catalogue.
        job: the id of the job that made it.
        measured: what was measured.
    """

    family: str | None
    stage: str | None
    role: str | None
    voice: str
    width: str
    language: str | None
    target: str
    toolkit: str
    precision: str
    path: str
    sha256: str
    bytes: int
    onnx_sha256: str
    source: str
    source_sha256: str
    source_kind: str
    verdicts: VerdictCounts
    notable: tuple[Verdict, ...]
    simulator_db: float | None
    cost: EngineCost | None
    aperture: Aperture | None
    page: str | None
    job: str | None
    measured: EngineMeasured


@dataclass(frozen=True)
class JobMeasured:
    """Where a job ran and what it took, at its last attempt; None of what is not known."""

    node: str | None = None
    attempt: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Failure:
    """Something that is not as it should be.

    Attributes:
        fault: what is wrong.
        sentence: why, for the person who reads it.
        job, kind: the job's id and kind ("compile"); of a folder without jobs None and "engine".
        family, stage, voice, width, target: of what.
        path: the file that is wrong, where it is one.
        log: what the job's commands said, relative to the folder of the catalogue; None where there is no log.
        measured: of the job.
    """

    fault: Fault
    sentence: str
    job: str | None
    kind: str
    family: str | None
    stage: str | None
    voice: str
    width: str
    target: str | None
    path: str | None = None
    log: str | None = None
    measured: JobMeasured = field(default_factory=JobMeasured)


@dataclass(frozen=True)
class RepeatedFile:
    """A file that was made twice: its name, and both digests; None where it was made only once."""

    name: str
    first_sha256: str | None
    second_sha256: str | None

    @property
    def same(self) -> bool:
        """Whether the bytes are the same."""
        return self.first_sha256 == self.second_sha256


@dataclass(frozen=True)
class RepeatMeasured:
    """The nodes on which something was made twice.

    Attributes:
        first_node: that of the first time; None where the engine was found in the cache: nobody knows who made it.
        second_node: that of the second.
    """

    first_node: str | None
    second_node: str

    @property
    def apart(self) -> bool:
        """Whether it is known to have been made on two nodes."""
        return self.first_node not in (None, self.second_node)


@dataclass(frozen=True)
class Repeat:
    """Engines that were made twice, nothing found again.

    Attributes:
        job: the job that made them once more.
        of: the job that made them first.
        family, stage, voice, width, target: of what.
        files: engines and graphs of both.
        measured: where.
    """

    job: str
    of: str
    family: str
    stage: str
    voice: str
    width: str
    target: str | None
    files: tuple[RepeatedFile, ...]
    measured: RepeatMeasured

    @property
    def same(self) -> bool:
        """Whether all bytes are the same."""
        return bool(self.files) and all(file.same for file in self.files)


@dataclass(frozen=True)
class TotalsMeasured:
    """Of all jobs that are done: their nodes, seconds on the clock and of processors, and the most memory of one."""

    nodes: tuple[str, ...] = ()
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True)
class Totals:
    """What all comes to.

    Attributes:
        jobs: jobs of the plan.
        done: those of them that are done.
        engines, bytes: how many there are, and their size.
        voices, targets: how many of each have an engine.
        verdicts: of all engines.
        faults: how many failures of each kind there are.
        unplanned: checkpoints that no job was made of.
        repeated, same: sets of engines that were made twice, and those of them whose bytes are the same.
        measured: what was measured.
    """

    jobs: int
    done: int
    engines: int
    bytes: int
    voices: int
    targets: int
    verdicts: VerdictCounts
    faults: dict[str, int]
    unplanned: int
    repeated: int
    same: int
    measured: TotalsMeasured


@dataclass(frozen=True)
class Catalogue:
    """All of it.

    Attributes:
        matrix: the matrix's file name; None of a folder without a plan.
        engines: by family, stage, voice, width, target and role.
        failures: causes first, then what waits for them.
        unplanned: checkpoints that no job was made of.
        repeats: what was made twice.
        strangers: engines in the folder that no job of the plan made, by their paths.
        totals: their sums.
    """

    matrix: str | None
    engines: tuple[EngineEntry, ...]
    failures: tuple[Failure, ...]
    unplanned: tuple[Unplanned, ...]
    repeats: tuple[Repeat, ...]
    strangers: tuple[str, ...]
    totals: Totals
    schema: str = SCHEMA


def exit_code_of(catalogue: Catalogue) -> int:
    """1 where anything failed, was lost, is damaged or differs; else 2 where something was refused or left out."""
    faults = {failure.fault for failure in catalogue.failures}
    causes = faults - {Fault.WAITING}
    if causes - {Fault.REFUSED} or (faults and not causes):
        return EXIT_FAILED
    return EXIT_REFUSED if causes or catalogue.unplanned else EXIT_DONE


def summed(verdicts: Iterable[VerdictCounts]) -> VerdictCounts:
    """Counts of all of them together."""
    each = tuple(verdicts)
    return VerdictCounts(sum(v.passed for v in each), sum(v.failed for v in each), sum(v.unproven for v in each))
