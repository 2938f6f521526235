"""Farms that bench_farm.py runs: small voices through the real commands, and jobs that do nothing."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from environments.locks import FARM, parse_name
from farm.jobs import Job, Kind, Plan, write_plan
from farm.launch import run_workflow
from farm.outcomes import Ended, JobOutcome, read_outcome
from farm.places import FarmPlaces
from rknn_tts.steps import ROOT
from tests.bench.measured import Measured, measure
from tests.programs import write_program
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

TARGET = "rk3588"

OUTPUT = "made"
"""The farm's output, beside its matrix."""

MATRIX = f"""\
output = "{OUTPUT}"
targets = ["{TARGET}"]
twice = 0

[[voices]]
family = "piper"
checkpoints = ["voices/*.onnx"]
"""
"""Nothing is made twice: of a handful of voices that one job would be a tail, of a thousand it is none."""

DOES_NOTHING = """
import sys
from pathlib import Path
if sys.argv[1] == "catalogue":
    Path("../catalogue.json").write_text("{}")
print('{"schema": "rknn-tts/result/1", "exit_code": 0, "error": null, "files": [], "reused": []}')
"""
"""Prints what a command of rknn-tts prints at least; as the last one it leaves a catalogue."""

SEEDS = (*range(8), *range(9, 13))
"""Of the voices. What voice 8 says has no utterance of 256 frames or little more, which the default ladder's gates ask
for."""

MEMORY_BYTES = 4 * 10**9
"""Of the machine, to jobs that do nothing: none is kept waiting for it."""


@dataclass(frozen=True)
class FarmRun:
    """One run of a farm, and what became of its jobs.

    Attributes:
        cores: how many it was given.
        measured: the command.
        outcomes: of its jobs, by id.
    """

    cores: int
    measured: Measured
    outcomes: dict[str, JobOutcome]

    @property
    def overhead_s(self) -> float:
        """Of each job: what the cores were the farm's for, and no command of a job ran."""
        work_s = sum(outcome.wall_s for outcome in self.outcomes.values())
        return (self.measured.wall_s * self.cores - work_s) / len(self.outcomes)

    def means(self) -> dict[str, tuple[float, float]]:
        """By kind of job: mean time on the clock and of processors, of its commands."""
        found = defaultdict[str, list[JobOutcome]](list)
        for job, outcome in self.outcomes.items():
            found[job.partition("-")[0]].append(outcome)
        return {
            kind: (sum(one.wall_s for one in these) / len(these), sum(one.cpu_s for one in these) / len(these))
            for kind, these in sorted(found.items())
        }


def write_farm(folder: Path, voices: int) -> Path:
    """Write `voices` small voices and their matrix into the new `folder`; the matrix."""
    (folder / "voices").mkdir(parents=True)
    for seed in SEEDS[:voices]:
        write_voice(folder / "voices" / f"voice{seed}.onnx", Recipe(seed=seed))
    (folder / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    return folder / "matrix.toml"


def run_farm(matrix: Path, cores: int) -> FarmRun:
    """`rknn-tts farm` on `cores`, a cache of its own beside the matrix; all its jobs are done."""
    command: list[str | Path] = [ROOT / "rknn-tts", "farm", matrix, f"--cores={cores}", "--json"]
    environment = {**os.environ, "RKNN_TTS_CACHE": str(matrix.parent / "cache")}
    measured = measure(command, matrix.parent, environment)
    return FarmRun(cores, measured, dict(_outcomes(FarmPlaces(matrix.parent / OUTPUT))))


def run_nothing(folder: Path, jobs: int, cores: int) -> float:
    """Seconds that the workflow takes for `jobs` that do nothing, in the new `folder`."""
    places = FarmPlaces(folder)
    places.own.mkdir(parents=True)
    program = write_program(folder / "program", DOES_NOTHING)
    python = parse_name(ROOT, FARM).python
    write_plan(Plan("matrix.toml", tuple(_job(number) for number in range(jobs))), places.plan)
    begun = time.monotonic()
    code = run_workflow(
        places,
        python=python,
        cores=cores,
        memory_bytes=MEMORY_BYTES,
        profile=None,
        say=lambda line: None,
        program=program,
    )
    wall_s = time.monotonic() - begun
    assert code == 0, places.workflow_log.read_text(encoding="utf-8", errors="replace")
    assert len(dict(_outcomes(places))) == jobs
    return wall_s


def _outcomes(places: FarmPlaces) -> Iterator[tuple[str, JobOutcome]]:
    for path in sorted(places.outcome("x").parent.glob("*.json")):
        outcome = read_outcome(path)
        assert outcome is not None, path
        assert outcome.ended is Ended.DONE, outcome.sentence
        yield path.stem, outcome


def _job(number: int) -> Job:
    return Job(
        id=f"{Kind.EXPORT.value}-{number:016x}",
        kind=Kind.EXPORT,
        commands=(("export", "piper", "--json"),),
        folder="nothing",
        needs=(),
        family="piper",
        stage="decoder",
        voice=f"voice{number}",
        width="",
        target=None,
        toolkit="2.3.2",
    )
