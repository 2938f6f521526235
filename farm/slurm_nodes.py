"""Which nodes a SLURM has, asked where a job is kept away from one."""

from __future__ import annotations

import subprocess

_LIST = ("sinfo", "--noheader", "--Node", "--responding", "--format=%N")

_TIMEOUT_S = 10.0
"""After which a controller that does not answer is none; sinfo itself would wait longer."""


def has_another(node: str) -> bool:
    """Whether `node` is one of SLURM's, and another answers too; False where there is no SLURM."""
    try:
        done = subprocess.run(_LIST, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    nodes = set(done.stdout.split())
    return done.returncode == 0 and node in nodes and len(nodes) > 1
