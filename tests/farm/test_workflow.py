"""The workflow by Snakemake itself, on jobs of the program that stands in for rknn-tts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.processes import descendants
from farm.died import Died, write_died
from farm.jobs import Job, Kind
from farm.launch import run_workflow
from farm.outcomes import Ended
from tests.farm.stub_farms import MACHINE_MB, MB, StubFarm, job, stub_farm

ROOT = Path(__file__).resolve().parents[2]
ATTEMPTS = 3
CORES = 2
PATIENCE_S = 30.0
EXIT_INTERRUPTED = 130

FIRST = [job(f"voice{number}") for number in range(3)]
SECOND = [job(export.voice, kind=Kind.COMPILE, needs=[export]) for export in FIRST]
PAGES = [job(engine.voice, kind=Kind.PAGE, needs=[engine]) for engine in SECOND]
TWICE = job("voice0", kind=Kind.TWICE, needs=[SECOND[0]])
DONE = [*FIRST, *SECOND, *PAGES, TWICE]

POISONED = job("poisoned", "refuse")
AFTER_POISONED = job("poisoned", kind=Kind.COMPILE, needs=[POISONED])
AFTER_THAT = job("poisoned", kind=Kind.PAGE, needs=[AFTER_POISONED])
FAILED = job("failed", "fail")
HUNGRY = [job("hungry", "eat"), job("hungrier", "eat")]
FOREWARNED = job("forewarned", "eat")
"""It died for memory in an earlier run, whose note is there."""

LARGE = replace(job("large", kind=Kind.COMPILE), stage="unmeasured", checkpoint_bytes=10**9)
"""It is expected to take more than the machine has: 25 GB, by the size of its checkpoint."""

KILLED = job("killed", "kill-runner")
AFTER_KILLED = job("killed", kind=Kind.COMPILE, needs=[KILLED])
CRASHING = job("crashing", "crash")
FULL = job("full", "full")
SLOW = [job(f"slow{number}", "slow") for number in range(5)]

ENDS = {
    **dict.fromkeys([*DONE, *SLOW, *HUNGRY, FOREWARNED, LARGE, KILLED, AFTER_KILLED], Ended.DONE),
    POISONED: Ended.REFUSED,
    AFTER_POISONED: Ended.WAITING,
    AFTER_THAT: Ended.WAITING,
    FAILED: Ended.FAILED,
    CRASHING: Ended.LOST,
    FULL: Ended.DISK,
}
"""How each job of the first farm is to end."""

TRIES = {HUNGRY[0]: 2, HUNGRY[1]: 2, KILLED: 2, CRASHING: ATTEMPTS, FULL: 2}
"""At which attempt, where not at the first."""


def run(farm: StubFarm, jobs: list[Job], python: Path, said: list[str]) -> int:
    """The workflow on `jobs`, to its end."""
    farm.plan(jobs)
    return run_workflow(
        farm.places,
        python=python,
        cores=CORES,
        memory_bytes=MACHINE_MB * MB,
        profile=None,
        say=said.append,
        program=farm.program,
    )


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the run of `ended` said."""
    return []


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, farm_python: Path, said: list[str]) -> Iterator[StubFarm]:
    """The first farm, run to its end."""
    folder = tmp_path_factory.mktemp("workflow")
    farm = stub_farm(folder / "a 'farm' {of} $voices")
    write_died(Died(FOREWARNED.id, 2, Ended.MEMORY, "It took more.", "n1", 1), farm.places.died(FOREWARNED.id))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUB_LOG", str(farm.log))
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("SNAKEMAKE_PROFILE", "/nowhere")
        (folder / "home").mkdir()
        patch.chdir(folder / "home")
        assert run(farm, list(ENDS), farm_python, said) == 0
        yield farm


@pytest.mark.parametrize("one", ENDS, ids=lambda one: one.voice + "-" + one.kind.value)
def test_job_costs_only_itself_when_it_ends_badly(one: Job, ended: StubFarm) -> None:
    outcome = ended.outcome(one)
    assert (outcome.ended, outcome.attempt) == (ENDS[one], TRIES.get(one, 1))


def test_workflow_ends_with_the_catalogue(ended: StubFarm) -> None:
    assert ended.places.catalogue.read_text(encoding="utf-8") == "{}"


def test_progress_is_told_when_jobs_end(ended: StubFarm, said: list[str]) -> None:
    bad = sum(end is not Ended.DONE for end in ENDS.values())
    assert said[-1] == f"{len(ENDS)} of {len(ENDS)} jobs done, {bad} failed"


def test_job_runs_alone_when_it_is_tried_again_or_died_for_memory_before(ended: StubFarm) -> None:
    def overlap(first: Job, second: Job) -> bool:
        return spans[first][0] < spans[second][1] and spans[second][0] < spans[first][1]

    outcomes = {one: ended.outcome(one) for one in ENDS}
    spans = {one: (found.started_s, found.started_s + found.wall_s) for one, found in outcomes.items()}
    assert any(overlap(first, second) for first in SLOW for second in SLOW if first != second)
    for alone in [*TRIES, FOREWARNED]:
        assert not [other.voice for other in ENDS if other != alone and overlap(alone, other)]


def test_job_may_take_what_the_machine_has_when_it_is_expected_to_take_more(ended: StubFarm) -> None:
    assert [line.words[2] for line in ended.lines("start", LARGE.voice)] == [f"{MACHINE_MB / 1000:.3f}"]


def test_nothing_is_written_beside_the_farm(ended: StubFarm) -> None:
    home = ended.places.output.parent / "home"
    assert not list(home.iterdir())


def test_nothing_is_begun_again_when_all_is_done(
    ended: StubFarm, farm_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_LOG", str(ended.log))
    before = len(ended.lines("start"))
    said: list[str] = []
    # An export that is as new as it would be if it had been made again: what was made from it stands.
    os.utime(ended.places.outcome(FIRST[0].id))
    assert run(ended, list(ENDS), farm_python, said) == 0
    assert len(ended.lines("start")) == before
    assert not said


def test_what_was_made_from_a_job_stands_when_that_is_done_again(
    tmp_path: Path, farm_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = stub_farm(tmp_path / "farm")
    monkeypatch.setenv("STUB_LOG", str(farm.log))
    export = job("export")
    made = job("compile", kind=Kind.COMPILE, needs=[export])
    new = job("another", kind=Kind.COMPILE, needs=[export])
    farm.plan([export, made, new])
    farm.at_hand(made, "n1")
    assert run(farm, [export, made, new], farm_python, []) == 0
    assert [line.words[1] for line in farm.lines("start")] == ["export", "another"]
    assert farm.outcome(made).node == "n1"


DRIVER = """
import signal, sys
from pathlib import Path
from farm.launch import run_workflow
from farm.places import FarmPlaces
output, python, program, memory_bytes = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a script has the tests in the background
try:
    code = run_workflow(FarmPlaces(Path(output)), python=Path(python), cores=2, memory_bytes=int(memory_bytes),
                        profile=None, say=print, program=Path(program))
except KeyboardInterrupt:
    sys.exit(130)
sys.exit(code)
"""


@contextmanager
def driven(farm: StubFarm, python: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The workflow on what is planned, in a process of its own."""
    words = [str(farm.places.output), str(python), str(farm.program), str(MACHINE_MB * MB)]
    environment = {**farm.environment, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", DRIVER, *words], env=environment, cwd="/") as process:
        yield process


def test_run_resumes_when_it_was_interrupted_or_part_of_it_killed(
    tmp_path: Path, farm_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = stub_farm(tmp_path / "farm")
    monkeypatch.setenv("STUB_LOG", str(farm.log))
    jobs = [job(f"slow{number}", "slow") for number in range(12)]
    farm.plan(jobs)
    interrupted = end_in_the_middle(farm, farm_python, lambda process: process.send_signal(signal.SIGINT))
    assert interrupted == EXIT_INTERRUPTED
    killed = end_in_the_middle(farm, farm_python, lambda process: os.kill(snakemake_of(process), signal.SIGKILL))
    assert killed == -signal.SIGKILL % 256
    gone = end_in_the_middle(farm, farm_python, lambda process: process.kill())
    assert gone == -signal.SIGKILL

    done = [one for one in jobs if farm.places.outcome(one.id).exists()]
    assert 3 <= len(done) < len(jobs)
    before = len(farm.lines("start"))
    assert run(farm, jobs, farm_python, []) == 0
    assert len(farm.lines("start")) - before == len(jobs) - len(done)
    assert all(farm.outcome(one).ended is Ended.DONE for one in jobs)
    # No job was begun twice but those that ran when they were ended, at most two each time.
    assert len(farm.lines("start")) <= len(jobs) + 3 * CORES


def end_in_the_middle(farm: StubFarm, python: Path, end: Callable[[subprocess.Popen[bytes]], None]) -> int:
    """Runs the workflow in a process of its own until one more job has ended, then `end`s it; its exit code.

    Nothing that it started is left running.
    """
    outcomes = farm.places.outcome("x").parent
    before = len(list(outcomes.glob("*.json")))
    with driven(farm, python) as process:
        until(lambda: len(list(outcomes.glob("*.json"))) > before)
        below = [one.pid for one in descendants(process.pid)]
        assert len(below) > 1
        end(process)
        code = process.wait(PATIENCE_S)
    left = [pid for pid in below if Path(f"/proc/{pid}").exists()]
    if code == -signal.SIGKILL:  # it could not wait for the others
        until(lambda: not [pid for pid in left if Path(f"/proc/{pid}").exists()])
    else:
        assert not left
    return code


def snakemake_of(process: subprocess.Popen[bytes]) -> int:
    """Snakemake's process: the first one below."""
    return descendants(process.pid)[0].pid


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
