"""How much memory there is for us: the machine's, or the container's where that is less."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

_LIMIT_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}
"""The file with the limit, by the controller in /proc/self/cgroup: version 2 (which names none), version 1."""

KIB = 1024
"""What /proc/meminfo counts in, though it writes kB (proc(5))."""

_MOUNTS = {"": ("", "unified"), "memory": ("memory",)}
"""Where below /sys/fs/cgroup each is mounted; `unified` where both versions are in use (cgroups(7))."""


def memory_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """The memory that we and our children can ever have: the least of the machine's and of every limit above us."""
    physical_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical_bytes, *_limits_bytes(proc, cgroups)])


def available_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """The memory that is free now, or that the kernel can free (MemAvailable, proc(5)); where none is told, all."""
    most_bytes = memory_bytes(proc, cgroups)
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii", errors="replace").split("\n")
    except OSError:
        return most_bytes
    told = [line.split() for line in lines if line.startswith("MemAvailable:")]
    free = [int(words[1]) * KIB for words in told if len(words) > 1 and words[1].isdigit()]
    return min([most_bytes, *free])


def _limits_bytes(proc: Path, cgroups: Path) -> Iterator[int]:
    """The limit of our control group and of each above it, of either version; what cannot be read sets none.

    In a container the group may be named as the host sees it while only its own part is mounted: then just the top of
    the mount, which is the container's own group, is found.
    """
    try:
        groups = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in groups:
        _, _, rest = line.partition(":")
        controllers, colon, group = rest.partition(":")
        for controller in controllers.split(",") if colon else ():
            for mount in _MOUNTS.get(controller, ()):
                inside = Path(group.lstrip("/"))
                for folder in (inside, *inside.parents):
                    yield from _limit_bytes(cgroups / mount / folder / _LIMIT_FILES[controller])


def _limit_bytes(file: Path) -> Iterator[int]:
    try:
        text = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return
    if text.isdigit():  # not "max"; version 1 has a number beyond any memory in its place
        yield int(text)
