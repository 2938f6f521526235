"""Runs a command and measures it: time, CPU of all its processes, and the memory that they hold together."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_S = 0.02
"""Between two looks at the memory; a look costs a fraction of a millisecond."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Measured:
    """One run of a command.

    Attributes:
        wall_s: from its start to its end.
        cpu_s: of the process and of all its descendants, user and system.
        tree_peak_mb: the most that it and its descendants held at once: the sum of their resident memory, so a page
            that two of them share counts twice.
        process_peak_mb: the most that one of them held.
        output: its standard output.
        stamps: the lines of its standard error, each with the seconds since the start.
    """

    wall_s: float
    cpu_s: float
    tree_peak_mb: float
    process_peak_mb: float
    output: str
    stamps: tuple[tuple[float, str], ...]


def measure(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Measured:
    """Run `command` in `folder` to its end, which must be a good one."""
    output, lines = folder / "stdout", list[tuple[float, str]]()
    start = time.monotonic()
    with output.open("wb") as stdout:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        memory = _Memory(process.pid)
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                lines.append((time.monotonic() - start, line.rstrip()))
        _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped; Popen need not look for it
    memory.stop()
    assert process.returncode == 0, "\n".join(line for _, line in lines)
    return Measured(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        tree_peak_mb=memory.tree_peak_bytes / 1e6,
        process_peak_mb=memory.process_peak_bytes / 1e6,
        output=output.read_text(encoding="utf-8", errors="replace"),
        stamps=tuple(lines),
    )


class _Memory:
    """Looks at the memory of a process and its descendants until it is stopped."""

    def __init__(self, pid: int) -> None:
        self.tree_peak_bytes = self.process_peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(pid,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self, pid: int) -> None:
        while not self._ended.wait(_SAMPLE_S):
            held = [_resident_bytes(each) for each in _tree(pid)]
            self.tree_peak_bytes = max(self.tree_peak_bytes, sum(held))
            self.process_peak_bytes = max([self.process_peak_bytes, *held])


def _tree(pid: int) -> list[int]:
    """`pid` and its descendants."""
    found, todo = list[int](), [pid]
    while todo:
        each = todo.pop()
        found.append(each)
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                todo += [int(word) for word in children.read_text().split()]
            except OSError:  # the thread has just ended
                continue
    return found


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):  # it has just ended
        return 0
