"""Snakemake, with the executor of farm/executors among those that it finds; the words are Snakemake's own.

    python -E -s farm/snakemake_main.py WORDS...

Snakemake looks for executors on the path, of which the variables of the environment are no part here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

EXECUTORS = Path(__file__).resolve().parent / "executors"


def main() -> None:
    """Runs Snakemake, which ends the process."""
    from snakemake.cli import main as snakemake

    _count_what_retries_ask_for()
    snakemake()


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


if __name__ == "__main__":
    # In the place of this file's own folder, whose modules' names are common ones.
    sys.path[0] = str(EXECUTORS)
    main()
