"""Runs the farm's workflow: Snakemake as a child, its progress told by the outcomes that appear."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from farm.jobs import read_plan
from farm.measured import SEED, read_table
from farm.outcomes import Ended, read_outcome
from farm.places import FarmPlaces
from farm.plan_tasks import tasks_of
from farm.settings import Settings, write_settings
from farm.tasks import write_tasks
from farm.watch import TERM_PERIOD_S

FOLDER = Path(__file__).resolve().parent
SNAKEFILE = FOLDER / "Snakefile"
SNAKEMAKE = FOLDER / "snakemake_main.py"
PROGRAM = FOLDER.parent / "rknn-tts"
COMMON_PROFILE = FOLDER / "profiles" / "common"
"""Options wherever the workflow runs; what a profile of the user says goes before it."""

MB = 10**6

SAY_S = 2.0
"""How often the outcomes are counted, which on a network's disk costs a few milliseconds for each thousand of them."""

_WATCH_S = 0.1
_END_PERIOD_S = TERM_PERIOD_S + 8.0
"""How long Snakemake has to end with its jobs, on a cluster to cancel them."""


def run_workflow(
    places: FarmPlaces,
    *,
    python: Path,
    cores: int | None,
    memory_bytes: int,
    profile: Path | None,
    say: Callable[[str], None],
    program: Path = PROGRAM,
) -> int:
    """Run the jobs of the plan in the farm's folder that have no outcome; Snakemake's exit code.

    It is 0 where every job has one, however that ended; then there is a catalogue as well.

    Args:
        places: the farm's files; of them there is the plan.
        python: of the farm's own environment.
        cores: jobs at once; None for a processor each, or on a cluster as the profile says.
        memory_bytes: what the jobs on this machine may take together; 0 on a cluster, where each asks for its own.
        profile: a folder with a `config.yaml` of Snakemake's options; None where there is nothing to add to the farm's.
        say: takes a line for the user.
        program: what runs the jobs' commands.

    Raises:
        KeyboardInterrupt: of the user; nothing is left running.
        UserInput: plan or table cannot be read.
        OSError: the log cannot be written, or `python` is none.
    """
    tasks = tasks_of(read_plan(places.plan), read_table(SEED, places.measured), places)
    write_tasks(tasks, places.tasks)
    write_settings(Settings(str(program), str(python), memory_bytes), places.settings)
    command = workflow_command(places, python=python, cores=cores, memory_bytes=memory_bytes, profile=profile)
    with places.workflow_log.open("wb") as log, _begun(command, places.own, log.fileno()) as process:
        progress = _Progress(places, [task.job.id for task in tasks])
        next_s = time.monotonic() + SAY_S
        while process.poll() is None:
            time.sleep(_WATCH_S)
            if time.monotonic() >= next_s:
                progress.tell(say)
                next_s = time.monotonic() + SAY_S
        progress.tell(say)
    return process.returncode


def last_line(log: Path) -> str:
    """The last line in the file `log` that says something; "" where none does."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def workflow_command(
    places: FarmPlaces, *, python: Path, cores: int | None, memory_bytes: int, profile: Path | None
) -> list[str]:
    """The command line that runs the workflow; arguments as of `run_workflow`.

    As it names profiles, Snakemake takes none that a variable of the user's names (SNAKEMAKE_PROFILE).
    """
    command = [str(python), "-E", "-s", str(SNAKEMAKE), "--snakefile", str(SNAKEFILE)]
    command += ["--directory", str(places.own), "--configfile", str(places.settings)]
    command += ["--profile", str(COMMON_PROFILE), "--workflow-profile", str(profile) if profile else "none"]
    if memory_bytes:
        command += ["--cores", str(cores or len(os.sched_getaffinity(0)))]
        command += ["--resources", f"mem_mb={memory_bytes // MB}"]
    elif cores is not None:
        command += ["--jobs", str(cores)]
    return command


@contextmanager
def _begun(command: Sequence[str], folder: Path, log: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command, running in a session of its own; whatever ends this context ends it, with all its jobs.

    Its stdin ends with us, even where we are killed: then it ends itself likewise (farm/snakemake_main.py).
    """
    os.write(log, f"{shlex.join(command)}\n".encode(errors="surrogateescape"))
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process)
        elif process.returncode < 0:  # it was killed; the runners that it leaves are about to end
            _wait_for_group(process.pid)
        assert process.stdin is not None
        process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End Snakemake and the runners in its process group, which end what they have started; in the end by force."""
    for number in (signal.SIGINT, signal.SIGKILL):
        os.killpg(process.pid, number)
        try:
            process.wait(_END_PERIOD_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _wait_for_group(group: int) -> None:
    """Waits until no process is in the process group `group`, and ends what is in it in the end by force."""
    deadline_s = time.monotonic() + _END_PERIOD_S
    while _signal_group(group, 0):
        if time.monotonic() > deadline_s:
            _signal_group(group, signal.SIGKILL)
            return
        time.sleep(_WATCH_S)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:  # it is empty
        return False
    return True


class _Progress:
    """Counts outcomes as they appear."""

    def __init__(self, places: FarmPlaces, jobs: Sequence[str]) -> None:
        self._folder, self._jobs = places.outcome("x").parent, {f"{job}.json" for job in jobs}
        self._told = self._present()
        self._failed = 0

    def tell(self, say: Callable[[str], None]) -> None:
        """Says how far it is, where that has changed."""
        new = self._present() - self._told
        if not new:
            return
        self._told |= new
        outcomes = [read_outcome(self._folder / name) for name in new]
        self._failed += sum(outcome is not None and outcome.ended is not Ended.DONE for outcome in outcomes)
        failed = f", {self._failed} failed" if self._failed else ""
        say(f"{len(self._told)} of {len(self._jobs)} jobs done{failed}")

    def _present(self) -> set[str]:
        try:
            with os.scandir(self._folder) as entries:
                return {entry.name for entry in entries} & self._jobs
        except FileNotFoundError:
            return set()
