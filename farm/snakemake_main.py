"""Snakemake, with the executor of farm/executors among those that it finds; the words are Snakemake's own.

    python -E -s farm/snakemake_main.py [-m snakemake] WORDS...

With `-m snakemake` it is the Snakemake of a job on a cluster's node, which executors start as `PYTHON -m snakemake`.
Snakemake looks for executors on the path, of which the variables of the environment are no part here.
"""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
import threading
from pathlib import Path
from typing import Any

EXECUTORS = Path(__file__).resolve().parent / "executors"

OF_A_JOB = ["-m", "snakemake"]


def main() -> None:
    """Runs Snakemake, which ends the process."""
    from snakemake.cli import main as snakemake

    if sys.argv[1:3] == OF_A_JOB:
        del sys.argv[1:3]
    else:
        # A script's background job has it ignored, and we would inherit that: no interrupt would reach Snakemake.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _end_with_who_started_us()
    _quote_python()
    _count_what_retries_ask_for()
    _look_again_once()
    snakemake()


def _end_with_who_started_us() -> None:
    """Where stdin is a pipe and we lead a process group: ends all of it, as Ctrl-C does, when the pipe does.

    farm/launch.py holds its other end, and may be killed. Snakemake then cancels what it has on a cluster.
    """
    if not stat.S_ISFIFO(os.fstat(0).st_mode) or os.getpgrp() != os.getpid():
        return
    lifeline, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def watch() -> None:
        while os.read(lifeline, 1):
            continue
        os.killpg(os.getpgrp(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _quote_python() -> None:
    """Makes what executors start on other machines this program, by a path that may have blanks.

    Snakemake 9.27.1 writes the path of its Python into a shell's command as it is (spawn_jobs.py, `get_executable`).
    """
    from snakemake_executor_plugin_slurm_jobstep import Executor as JobStep
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    words = [sys.executable, "-E", "-s", str(Path(__file__).resolve())]

    def quoted(executor: Any) -> str:
        return shlex.join(words)

    RemoteExecutor.get_python_executable = quoted
    JobStep.get_python_executable = quoted


def _count_what_retries_ask_for() -> None:
    """Makes the scheduler count what another attempt asks for.

    Snakemake 9.27.1 evaluates a job's resources anew for another attempt (jobs.py, the setter of `Job.attempt`), and
    keeps the sum that its scheduler counts with: on one machine a job that asks for all memory ran beside others.
    """
    from snakemake.jobs import Job

    published = Job.attempt

    def set_attempt(job: Any, attempt: int) -> None:
        published.fset(job, attempt)
        job._scheduler_resources = None

    Job.attempt = property(published.fget, set_attempt)


def _look_again_once() -> None:
    """Makes the scheduler have one timer at a time that wakes it.

    It limits how many jobs start in a second (--max-jobs-per-timespan, which cannot be switched off), and so looks
    again a second after every look: Snakemake 9.27.1 (job_scheduler.py, `_schedule_reevalutation`) starts a timer with
    each look, the timers' own included, so that there is one more for every job that has ended. After 190 of 3300 jobs
    it had looked 2656 times, each time at 100 jobs.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    waiting: set[int] = set()

    def schedule(scheduler: Any, delay_s: float) -> None:
        def look() -> None:
            waiting.discard(id(scheduler))
            scheduler._open_jobs.release()

        if id(scheduler) not in waiting:
            waiting.add(id(scheduler))
            timer = threading.Timer(delay_s, look)
            timer.daemon = True  # the end is not waited for
            timer.start()

    JobScheduler._schedule_reevalutation = schedule


if __name__ == "__main__":
    # In the place of this file's own folder, whose modules' names are common ones.
    sys.path[0] = str(EXECUTORS)
    main()
