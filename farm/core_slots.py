"""Processors of one's own, among the runners of jobs on one machine that know nothing of each other.

A processor is taken by binding a name in Linux' abstract socket namespace: the kernel gives it to one process at a
time, on that machine alone (in that container, as which we see no other's jobs), and takes it back however the process
ends. No folder has to be node-local or writable, and nothing is left behind.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

PREFIX = "rknn-tts-processor"


@contextmanager
def own_processors(
    count: int, allowed: Iterable[int] | None = None, prefix: str = PREFIX
) -> Iterator[frozenset[int] | None]:
    """`count` processors that no other holder has until the end of the context; None where not as many are free.

    Args:
        count: how many, at least 1.
        allowed: among which; None for those that this process may run on.
        prefix: of the names; holders of another one are not seen.
    """
    with ExitStack() as held:
        taken: set[int] = set()
        for processor in sorted(os.sched_getaffinity(0) if allowed is None else allowed):
            if len(taken) < count and _take(f"\0{prefix}-{os.getuid()}-{processor}", held):
                taken.add(processor)
        if len(taken) < count:
            held.close()
            yield None
        else:
            yield frozenset(taken)


def _take(name: str, held: ExitStack) -> bool:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(name)
    except OSError:  # another has it
        holder.close()
        return False
    held.enter_context(holder)
    return True
