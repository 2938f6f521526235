"""Runs one job's commands and writes what became of them.

    python -I -S farm/run_job.py JOB --parent PID --attempt N --alone 0|1 --memory-mb MB --threads N

Started by Snakemake in the farm's own folder (OUTPUT/.farm), on whatever node. Exit code 0 whenever the outcome is
written, whether the job went well or not; 1 where another attempt may mend it; 130 where it was told to end. Needs the
standard library alone, since it stands at the start of each of thousands of jobs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

EXIT_WRITTEN = 0
EXIT_AGAIN = 1
EXIT_STOPPED = 130

NODE_SHARE = 0.9
"""Of a node's memory for a job that has it to itself, as for a toolkit that has a machine (rknn_tts): the rest is the
system's."""

MB = 10**6


def main(words: Sequence[str]) -> int:
    """Runs the job that `words` name; the exit code."""
    from contracts.errors import RknnTtsError
    from farm.attempt import Allotment, attempt_job
    from farm.core_slots import own_processors
    from farm.places import FarmPlaces
    from farm.settings import read_settings
    from farm.tasks import find_task
    from farm.watch import Stopped, begin

    options = _options(words)
    places = FarmPlaces(Path.cwd().parent)
    try:
        begin(options.parent)
        settings = read_settings(places.settings)
        task = find_task(options.job, places.tasks)
        with own_processors(options.threads, prefix=settings.processors) as processors:
            if processors is not None:
                os.sched_setaffinity(0, processors)
            allotment = Allotment(
                attempt=options.attempt,
                last=options.attempt >= settings.attempts,
                memory_bytes=options.memory_mb * MB or _node_memory_bytes(),
                alone=bool(options.alone),
            )
            return EXIT_WRITTEN if attempt_job(task.job, places, settings, allotment) else EXIT_AGAIN
    except Stopped:
        return EXIT_STOPPED
    except (RknnTtsError, OSError) as error:
        sys.stderr.write(f"{options.job}: {error}\n")
        return EXIT_AGAIN


def _node_memory_bytes() -> int:
    """What a job may take that has a node to itself, of which nobody has said how much memory it has."""
    from engine.memory import memory_bytes

    return int(NODE_SHARE * memory_bytes())


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="farm/run_job.py")
    parser.add_argument("job")
    parser.add_argument("--parent", type=int)
    parser.add_argument("--attempt", type=int, default=1)
    parser.add_argument("--alone", type=int, default=0)
    parser.add_argument("--memory-mb", type=int, required=True, help="0: all that this machine has")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(words)


if __name__ == "__main__":
    # -I leaves the path to the standard library.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(main(sys.argv[1:]))
