"""What a plan takes on paper, by what its jobs took before: hours, memory, room. Nothing is run."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from farm.jobs import Job, Plan
from farm.needs import Needs, needs_of_all
from farm.rows import Table

FARM_S = 0.5
"""What the farm takes around each job: the most that its bench allows (docs/farm.md)."""

GB = 10**9
HOUR_S = 3600
MINUTES_PER_HOUR = 60

_STEP_BYTES = 64 * 10**6
"""Memory is counted in these, rounded up, so that jobs are of few sorts and 20,000 are placed within a second."""


@dataclass(frozen=True)
class Paper:
    """What a plan takes.

    Attributes:
        jobs: how many there are.
        cores: processors that it has, one a job.
        memory_gb: memory that it may take.
        core_hours: of all jobs together.
        hours: on the clock.
        peak_memory_gb: the most that jobs are given at one time, margins included.
        disk_gb: what is left in the output folder.
        cache_gb: what is written to the cache, which keeps as much as its limit allows (docs/cache.md).
        unmeasured: jobs of a sort that was not measured: their figures are those of the nearest, or guessed by size.
    """

    jobs: int
    cores: int
    memory_gb: float
    core_hours: float
    hours: float
    peak_memory_gb: float
    disk_gb: float
    cache_gb: float
    unmeasured: int

    @property
    def text(self) -> str:
        """In two sentences or three, for a person."""
        work = f"{count_text(self.jobs, 'job')} take {hours_text(self.core_hours)} of one core"
        machine = f"{count_text(self.cores, 'core')} with {gb_text(self.memory_gb)} of memory"
        used = f"at most {gb_text(self.peak_memory_gb)} of it in use"
        written = f"write {gb_text(self.cache_gb)} to the cache"
        sentences = [
            f"{work}: {hours_text(self.hours)} on {machine}, {used}.",
            f"They leave {gb_text(self.disk_gb)} in the output folder, and {written}.",
        ]
        if self.unmeasured:
            nearest = "taken as the nearest that was, or by the size of their checkpoint"
            sentences.append(f"{self.unmeasured:,} of the jobs are of a sort that was not measured, and {nearest}.")
        return " ".join(sentences)


def on_paper(plan: Plan, table: Table, cores: int, memory_bytes: int) -> Paper:
    """What the jobs of `plan` take on `cores` processors with `memory_bytes` of memory together.

    Jobs start in the plan's order, each as soon as what it needs is made and a core and its memory are free; one that
    needs more memory than there is starts alone. What is needed and stands in no job of the plan is there already.

    Raises:
        ValueError: jobs of the plan wait for each other.
    """
    needs = needs_of_all(plan.jobs, table)
    seconds, peak_bytes = _Simulation(plan.jobs, needs, cores, memory_bytes).run()
    return Paper(
        jobs=len(needs),
        cores=cores,
        memory_gb=memory_bytes / GB,
        core_hours=sum(need.expected_s + FARM_S for need in needs) / HOUR_S,
        hours=seconds / HOUR_S,
        peak_memory_gb=peak_bytes / GB,
        disk_gb=sum(need.left_bytes for need in needs) / GB,
        cache_gb=sum(need.cache_bytes for need in needs) / GB,
        unmeasured=sum(not need.measured for need in needs),
    )


class _Simulation:
    """The jobs on their cores, from one that ends to the next."""

    def __init__(self, jobs: Iterable[Job], needs: list[Needs], cores: int, memory_bytes: int) -> None:
        self._seconds = [need.expected_s + FARM_S for need in needs]
        steps = max(1, memory_bytes // _STEP_BYTES)
        self._steps = [min(steps, -(-need.memory_bytes // _STEP_BYTES)) for need in needs]
        self._free_cores, self._free_steps, self._all_steps = cores, steps, steps
        number_of = {job.id: number for number, job in enumerate(jobs)}
        self._after: list[list[int]] = [[] for _ in needs]
        self._waits_for = [0] * len(needs)
        for number, job in enumerate(jobs):
            for need in set(job.needs) & number_of.keys():
                self._after[number_of[need]].append(number)
                self._waits_for[number] += 1
        self._ready: dict[int, deque[int]] = {}
        """By steps of memory, so that what does not fit is passed over at once."""
        self._running: list[tuple[float, int]] = []
        """When each ends, and which it is."""

    def run(self) -> tuple[float, int]:
        """Seconds until the last ends, and the most bytes that were given at one time."""
        for number, waits_for in enumerate(self._waits_for):
            if not waits_for:
                self._make_ready(number)
        now_s, ended, most_steps = 0.0, 0, 0
        self._start(now_s)
        while self._running:
            most_steps = max(most_steps, self._all_steps - self._free_steps)
            now_s, number = heapq.heappop(self._running)
            ended += 1
            self._free_cores += 1
            self._free_steps += self._steps[number]
            for after in self._after[number]:
                self._waits_for[after] -= 1
                if not self._waits_for[after]:
                    self._make_ready(after)
            self._start(now_s)
        if ended < len(self._seconds):
            raise ValueError("jobs of the plan wait for each other")
        return now_s, most_steps * _STEP_BYTES

    def _make_ready(self, number: int) -> None:
        self._ready.setdefault(self._steps[number], deque()).append(number)

    def _start(self, now_s: float) -> None:
        """Start what can be, the first of the plan first."""
        while self._free_cores and (
            fitting := [s for s, queue in self._ready.items() if queue and s <= self._free_steps]
        ):
            steps = min(fitting, key=lambda s: self._ready[s][0])
            number = self._ready[steps].popleft()
            self._free_cores -= 1
            self._free_steps -= steps
            heapq.heappush(self._running, (now_s + self._seconds[number], number))


def count_text(number: int, what: str) -> str:
    """`1 core`, `1,683 voices`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def hours_text(hours: float) -> str:
    """Hours as a person tells them."""
    if hours < 1:
        return count_text(round(hours * MINUTES_PER_HOUR), "minute")
    return f"{hours:,.1f} hours" if hours < 100 else f"{hours:,.0f} hours"


def gb_text(gb: float) -> str:
    """GB as a person tells them."""
    return f"{gb:,.1f} GB" if gb < 10 else f"{gb:,.0f} GB"
