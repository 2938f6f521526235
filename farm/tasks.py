"""The jobs of a plan with what each may take of a machine, as a file of which one job is found without reading it all.

On a cluster every job starts a Snakemake of its own, on the job's node, and then the runner: each needs one job, and a
plan of 20 000 is 15 MB. So the file has a line a job, `ID JSON`, sorted by id, and is searched by halves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from contracts.errors import UserInput
from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json
from farm.jobs import Job


@dataclass(frozen=True)
class Task:
    """A job, and what it may take.

    Attributes:
        job: the job.
        memory_mb, disk_mb: what it is expected to take at most; it is ended beyond the former.
        minutes: the same of time, at least 1; a cluster may end it beyond.
        alone: whether it starts alone on its machine, since an earlier run's attempt died for memory.
    """

    job: Job
    memory_mb: int
    disk_mb: int
    minutes: int
    alone: bool = False


def write_tasks(tasks: Iterable[Task], path: Path) -> None:
    """Write `tasks` to `path`, whole or not at all."""
    lines = sorted(f"{task.job.id} {json.dumps(to_json(task))}\n" for task in tasks)
    write_whole(path, "".join(lines).encode("ascii"))


def read_tasks(path: Path) -> dict[str, Task]:
    """All tasks in the file `path`, by the job's id.

    Raises:
        UserInput: it cannot be read, or is damaged.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    return {task.job.id: task for task in (_task(line, path) for line in lines)}


def find_task(job: str, path: Path) -> Task:
    """The task of the job with the id `job` in the file `path`, of which a few lines are read.

    Raises:
        UserInput: the file cannot be read or is damaged, or has no such job.
    """
    wanted = job.encode()
    try:
        with path.open("rb") as file:
            # The line that is sought begins in [low, high).
            low, high = 0, file.seek(0, 2)
            while low < high:
                start, line = _line_after((low + high) // 2, low, file)
                identifier = line.partition(b" ")[0].rstrip()
                if identifier == wanted:
                    return _task(line, path)
                if identifier < wanted:
                    low = start + len(line)
                else:
                    high = start
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    raise UserInput(f"{path}: has no job {job}; run `rknn-tts farm MATRIX.toml` again.")


def _line_after(position: int, low: int, file: BinaryIO) -> tuple[int, bytes]:
    """The line that `position` lies in, and where it begins: not before `low`, where one begins."""
    step = 1 << 12
    start = position
    while start > low:
        begin = max(low, start - step)
        file.seek(begin)
        before = file.read(start - begin)
        newline = before.rfind(b"\n")
        if newline >= 0:
            start = begin + newline + 1
            break
        start = begin
    file.seek(start)
    return start, file.readline()


def _task(line: bytes, path: Path) -> Task:
    try:
        return from_json(Task, parse_json(line.partition(b" ")[2].decode()), "task")
    except ValueError as error:
        raise UserInput(f"{path}: is damaged ({error}); run `rknn-tts farm MATRIX.toml` again.") from error
