"""Which nodes a SLURM has, asked where a job is kept away from one."""

from __future__ import annotations

import subprocess

_LIST = ("sinfo", "--noheader", "--Node", "--responding", "--format=%N %R %t")
"""A line for each node of each partition: node, partition, state."""

_AT_WORK = frozenset({"idle", "mix", "alloc", "comp", "plnd"})
"""States of a node that takes jobs, now or when it has room (sinfo(1), NODE STATE CODES); one that is drained answers
too, and takes none."""

_SAVING_POWER = "~#"
"""Behind the state of a node that is switched on for a job."""

_TIMEOUT_S = 10.0
"""After which a controller that does not answer is none; sinfo itself would wait longer."""


def has_another(node: str) -> bool:
    """Whether `node` is one of SLURM's, and another takes jobs of every partition that it is in.

    A job that is kept off the only node that it may run on waits for ever, or is refused. False where there is no
    SLURM.
    """
    try:
        done = subprocess.run(_LIST, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode != 0:
        return False
    partitions: dict[str, set[str]] = {}
    at_work: set[str] = set()
    for line in done.stdout.splitlines():
        name, partition, state = line.split()
        partitions.setdefault(name, set()).add(partition)
        if state.rstrip(_SAVING_POWER) in _AT_WORK:
            at_work.add(name)
    return node in partitions and any(partitions[node] <= partitions[other] for other in at_work - {node})
