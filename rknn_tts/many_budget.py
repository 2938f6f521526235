"""How many voices are built at once: as many as there are processors, within the memory that they may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.processes import Process

BYTES_PER_CHECKPOINT_BYTE = 25
"""What a voice is expected to take until one has been built, for each byte of its checkpoint: Piper's default voice,
63.2 MB, took 1533 MB in all processes at most (measured, rk3588, 2.3.2: 805 of them rknn-tts, 728 the toolkit)."""

LEAST_BYTES = 1000 * 10**6
"""No voice is expected to take less: voices of the tests, of 0.06 to 4 MB, took 300 to 700 MB (measured, rk3588,
2.3.2), and an estimate that is too low costs a build that is begun again."""


@dataclass(frozen=True)
class Budget:
    """What the voices may use together, and what is known of one's need.

    Attributes:
        memory_bytes: resident memory of all their processes at one time.
        jobs: how many may run at once, whatever their need.
        expected_bytes: what one takes, until one has been built.
        measured_bytes: the most that a finished build took; 0 until there is one.
        least_bytes: what one took that had to be stopped: it needs that and more.
        room: how many ran on when one had to be stopped: no more at once until a build tells what one takes.
    """

    memory_bytes: int
    jobs: int
    expected_bytes: int
    measured_bytes: int = 0
    least_bytes: int = 0
    room: int | None = None

    @property
    def need_bytes(self) -> int:
        """What one voice takes, as far as that is known."""
        return max(self.measured_bytes or self.expected_bytes, self.least_bytes)

    @property
    def at_once(self) -> int:
        """How many may run at once; never fewer than one, which may need more than is thought to be there."""
        jobs = self.jobs if self.room is None else min(self.jobs, self.room)
        return max(1, min(jobs, self.memory_bytes // max(1, self.need_bytes)))

    def after_build(self, peak_bytes: int) -> Budget:
        """What is known once a build is finished that took `peak_bytes`."""
        return replace(self, measured_bytes=max(self.measured_bytes, peak_bytes), room=None)

    def after_stop(self, peak_bytes: int, left: int) -> Budget:
        """What is known once one was stopped that had taken `peak_bytes`, and `left` others went on."""
        return replace(self, least_bytes=max(self.least_bytes, peak_bytes), room=left)


def expected_bytes(checkpoint_bytes: Iterable[int]) -> int:
    """What the largest of these checkpoints is expected to take."""
    return max(LEAST_BYTES, BYTES_PER_CHECKPOINT_BYTE * max(checkpoint_bytes, default=0))


def tree_bytes(processes: Sequence[Process], roots: Iterable[int]) -> dict[int, int]:
    """The resident memory of each of `roots` and all below it.

    Args:
        processes: the processes there are, parents first (`engine.processes.descendants`).
        roots: ids of processes, none of which is below another.
    """
    held_bytes = dict.fromkeys(roots, 0)
    root_of = {root: root for root in held_bytes}
    for process in processes:
        root = root_of.setdefault(process.pid, root_of.get(process.parent, process.pid))
        if root in held_bytes:
            held_bytes[root] += process.rss_bytes
    return held_bytes


def one_too_many(held_bytes: Mapping[int, int], memory_bytes: int) -> int | None:
    """Which of these processes is to be stopped: the last, where all together hold more than `memory_bytes`."""
    if not held_bytes or sum(held_bytes.values()) <= memory_bytes:
        return None
    return list(held_bytes)[-1]
