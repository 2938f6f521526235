"""How long each stage of speaking takes.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Callable, Iterator, NamedTuple


class StageTime(NamedTuple):
    """How often a stage ran, and how long it took in all."""

    runs: int
    seconds: float


class Stopwatch:
    """Adds up the time of stages by name ("host half", "decoder"), in the order in which they first ran."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.stages: dict[str, StageTime] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time within as one run of the stage `name`; one that raises counts as well."""
        begun = self._clock()
        try:
            yield
        finally:
            before = self.stages.get(name, StageTime(0, 0.0))
            self.stages[name] = StageTime(before.runs + 1, before.seconds + self._clock() - begun)
