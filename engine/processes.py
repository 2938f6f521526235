"""What /proc says about the processes below one: who they are and what memory they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One line of /proc/PID/stat. `zombie`: it has ended and waits for its parent to take note."""

    pid: int
    parent: int
    rss_bytes: int
    zombie: bool


def descendants(pid: int) -> list[Process]:
    """Every process below `pid`, parents first; `pid` itself is not among them."""
    children: dict[int, list[Process]] = {}
    for process in _all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [pid]
    while waiting:
        below = children.pop(waiting.pop(0), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def resident_bytes(processes: Iterable[Process]) -> int:
    """Their resident memory in bytes; pages they share count once for each."""
    return sum(process.rss_bytes for process in processes)


def _all_processes() -> list[Process]:
    found = [_read(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - three times as fast
    return [process for process in found if process is not None]


def _read(pid: str) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # it ended in between
        return None
    # "pid (name) state ppid ..."; the name may hold spaces and brackets. Fields: proc(5), after the name from 0.
    fields = text.rpartition(b")")[2].split()
    return Process(int(pid), int(fields[1]), int(fields[21]) * _PAGE_BYTES, zombie=fields[0] in (b"Z", b"X"))
