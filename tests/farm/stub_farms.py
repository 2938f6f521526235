"""Small farms whose jobs are run by stub_program.py."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.jobs import ENGINES, EXPORTS, Job, Kind, Plan, write_plan
from farm.outcomes import Ended, JobOutcome, read_outcome, write_outcome
from farm.places import FarmPlaces
from farm.rows import Row, table_of, write_table
from farm.settings import Settings, write_settings
from farm.tasks import Task, write_tasks

RUNNER = Path(__file__).resolve().parents[2] / "farm" / "run_job.py"
STUB = Path(__file__).with_name("stub_program.py")

MB = 10**6
SMALL_MB = 100
"""What the stand-in may take: it has 12 MB, and one that eats 170 MB more."""

MACHINE_MB = 1000

STAGE = "decoder"

PREFIX_LENGTH = 80
"""A socket's name has 108 bytes (unix(7)), of which the farm's own part are the last."""


def job(name: str, do: str = "done", kind: Kind = Kind.EXPORT, needs: Sequence[Job] = ()) -> Job:
    """A job of one command that does as `do` says."""
    given = {Kind.COMPILE: [EXPORTS], Kind.PAGE: [ENGINES]}.get(kind, [])
    commands = [(kind.value, *given, "--name", name, "--do", do, "--json")]
    folder = f"{kind.value}/{name}"
    identifier = f"{kind.value}-{hashlib.sha256(f'{name} {do}'.encode()).hexdigest()[:16]}"
    if kind is Kind.TWICE:
        folder = f".farm/twice/{identifier}/made"
        commands = [
            ("export", "--name", name, "--do", do, "--json"),
            ("compile", EXPORTS, "--name", name, "--do", do, "--json"),
        ]
    return Job(
        id=identifier,
        kind=kind,
        commands=tuple(commands),
        folder=folder,
        needs=tuple(need.id for need in needs),
        family="stub",
        stage=STAGE,
        voice=name,
        width="",
        target="rk3588",
        toolkit="2.3.2",
    )


@dataclass(frozen=True)
class Line:
    """A line of the stand-in's log."""

    words: tuple[str, ...]
    time_s: float


@dataclass(frozen=True)
class StubFarm:
    """A farm in `places`, whose program and whose log stand beside it."""

    places: FarmPlaces

    @property
    def log(self) -> Path:
        return self.places.output.with_suffix(".log")

    @property
    def program(self) -> Path:
        return self.places.output.with_suffix(".program")

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "STUB_LOG": str(self.log), "PYTHONDONTWRITEBYTECODE": "1"}

    def plan(self, jobs: Sequence[Job]) -> None:
        """Writes what `rknn-tts farm` does before the workflow, and what its launcher does."""
        write_plan(Plan("stub.toml", tuple(jobs)), self.places.plan)
        write_tasks([Task(one, SMALL_MB, 10, 1) for one in jobs], self.places.tasks)

    def at_hand(self, one: Job, node: str) -> None:
        """Leaves the outcome of `one`, done on `node` before."""
        outcome = JobOutcome(one.id, Ended.DONE, None, node, attempt=1, started_s=0, wall_s=1, cpu_s=1, peak_bytes=MB)
        write_outcome(outcome, self.places.outcome(one.id))

    def attempt(
        self, one: Job, *, attempt: int = 1, alone: bool = False, memory_mb: int = SMALL_MB, threads: int = 1
    ) -> subprocess.CompletedProcess[str]:
        """Runs the runner on `one`, which was planned."""
        return subprocess.run(
            self.runner(one, attempt=attempt, alone=alone, memory_mb=memory_mb, threads=threads),
            cwd=self.places.own,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
        )

    def runner(
        self, one: Job, *, attempt: int = 1, alone: bool = False, memory_mb: int = SMALL_MB, threads: int = 1
    ) -> list[str]:
        """The runner's command line."""
        words = [sys.executable, "-I", "-S", str(RUNNER), one.id, "--parent", str(os.getpid())]
        words += ["--attempt", str(attempt), "--alone", str(int(alone))]
        return [*words, "--memory-mb", str(memory_mb), "--threads", str(threads)]

    def outcome(self, one: Job) -> JobOutcome:
        """What became of `one`."""
        found = read_outcome(self.places.outcome(one.id))
        assert found is not None, self.places.log(one.id).read_text(encoding="utf-8")
        return found

    def lines(self, first: str, name: str | None = None) -> list[Line]:
        """The log's lines that begin with the word `first`, of the job `name`."""
        rows = (
            [row.split("\t") for row in self.log.read_text(encoding="utf-8").splitlines()] if self.log.exists() else []
        )
        return [Line(tuple(row[:-1]), float(row[-1])) for row in rows if row[0] == first and name in (None, row[1])]


def stub_farm(output: Path) -> StubFarm:
    """A farm in the new folder `output`."""
    farm = StubFarm(FarmPlaces(output))
    farm.places.own.mkdir(parents=True)
    farm.program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{STUB}" "$@"\n', encoding="utf-8")
    farm.program.chmod(0o755)
    settings = Settings(
        str(farm.program), sys.executable, MACHINE_MB * MB, processors=f"test-{output}"[-PREFIX_LENGTH:]
    )
    write_settings(settings, farm.places.settings)
    rows = [Row(kind, "stub", STAGE, "", "rk3588", "2.3.2", 0, times=1, peak_bytes=SMALL_MB * MB) for kind in Kind]
    write_table(table_of({row.key: row for row in rows}, 0.0), farm.places.measured)
    return farm
