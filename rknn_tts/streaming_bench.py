"""What a stream of codes costs, step by step: the times of steps, of a whole stream, and of decoding without a state.

Codes arrive in chunks, and a chunk's audio is owed when it is there. A decoder with a state runs its new codes only, so
that a stream costs as many times what a code costs as it is long. One without decodes everything so far again at each
chunk: for n chunks of B codes n (n + 1) / 2 times B, which grows with the square. That decoder is given what is best
for it: of the steps there are, those that decode its prefix in the least time, from a zeroed cache.

Nothing here knows onnxruntime or a clock: both are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import NamedTuple

import numpy as np
from rknn_tts_runtime import CodeStep, plan_codes, stream_codes, walk_codes
from rknn_tts_runtime.stateful import CodeArray, RunStep

Clock = Callable[[], float]
"""Seconds since any moment, as `time.perf_counter`."""

REPEATS = 5
"""Runs of a step, behind one that is not counted; their median is told."""

SLOW_S, SLOW_REPEATS = 2.0, 3
"""Of a step whose first counted run takes longer, so many runs do."""

MOST_S = 120.0
"""What streaming may take in all, as the times of steps foretell it: what is dearest is computed from them instead."""

SHARES = (4, 2, 1)
"""Totals are told behind a quarter, half and all of the codes: what is linear doubles from one to the next."""

MS_PER_S = 1000.0


@dataclass(frozen=True)
class Stream:
    """What is timed.

    Attributes:
        latent: what the steps take, [1, C, N], of at least as many codes as the largest step.
        length: codes that are streamed, from the first on.
        steps: what runs a step, by how many codes it takes: one size, or two.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.
        sample_rate: samples per second.
    """

    latent: CodeArray
    length: int
    steps: Mapping[int, RunStep]
    cache_numel: int
    samples_per_code: int
    sample_rate: int

    @property
    def code_ms(self) -> float:
        """How long a code sounds."""
        return MS_PER_S * self.samples_per_code / self.sample_rate


@dataclass(frozen=True)
class StepTime:
    """The time of a step.

    Attributes:
        codes: how many it takes.
        ms: the median of all runs.
        ms_a_code: of one code.
        real_time_factor: that over how long a code sounds; below 1 a stream keeps up.
        runs: how many there were.
        spread: the longest run over the shortest.
    """

    codes: int
    ms: float
    ms_a_code: float
    real_time_factor: float
    runs: int
    spread: float


@dataclass(frozen=True)
class Total:
    """The time of all codes so far.

    Attributes:
        ms: in all.
        ms_a_code: of one code: the same behind any number of codes where time is linear, growing with them where not.
        computed: whether it is added up from the times of steps, and was not run.
    """

    ms: float
    ms_a_code: float
    computed: bool


@dataclass(frozen=True)
class StreamTime:
    """The time of a stream up to the end of one of its chunks.

    Attributes:
        chunks: codes that arrive at once: `16`, or `16, then 64`.
        codes: codes so far.
        first_audio_ms: from the arrival of the first chunk to its audio; the same with and without a state.
        with_state: each code decoded once.
        again: every prefix decoded again.
        ratio: how many times as long that takes; where a total is computed, of both as they are computed, for the
            time of a step differs from run to run.
    """

    chunks: str
    codes: int
    first_audio_ms: float
    with_state: Total
    again: Total
    ratio: float


@dataclass(frozen=True)
class StreamingBench:
    """Everything that was timed.

    Attributes:
        codes: codes of the stream.
        code_ms: how long one sounds.
        steps: the steps, the smallest first.
        streams: for each way in which codes arrive, the totals behind a quarter, half and all of them.
    """

    codes: int
    code_ms: float
    steps: tuple[StepTime, ...]
    streams: tuple[StreamTime, ...]


@dataclass(frozen=True)
class Chunks:
    """How codes arrive: `first` of them, and then `then` each time."""

    first: int
    then: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.then else f"{self.first}, then {self.then}"

    @property
    def small(self) -> int | None:
        """The size of the first step, where that is another."""
        return self.first if self.first != self.then else None

    def ends(self, length: int) -> list[int]:
        """How many codes there are behind each chunk; the last may bring fewer."""
        return [*range(self.first, length, self.then), length]


def bench_stream(stream: Stream, clock: Clock, say: Callable[[str], None]) -> StreamingBench:
    """Time the steps, and streams of every way in which codes may arrive.

    Args:
        stream: what is timed.
        clock: tells the time.
        say: gets the progress.
    """
    sizes = sorted(stream.steps)
    steps = tuple(_timed_step(stream, size, clock, say) for size in sizes)
    step_ms = {step.codes: step.ms for step in steps}
    ways = [Chunks(size, size) for size in sizes]
    if len(sizes) > 1:
        ways.append(Chunks(sizes[0], sizes[-1]))
    foretold = {
        Run(way, again): _foretold(way, again, stream.length, step_ms) for way in ways for again in (False, True)
    }
    measured: dict[Run, Series] = {}
    for run in _affordable(foretold):
        doing = "decoding every prefix again" if run.again else f"streaming {stream.length} codes"
        say(f"{doing} in chunks of {run.way}")
        measured[run] = _run_again(stream, run.way, step_ms, clock) if run.again else _run_once(stream, run.way, clock)
    streams = [told for way in ways for told in _told(way, stream.length, foretold, measured)]
    return StreamingBench(stream.length, stream.code_ms, steps, tuple(streams))


def cheapest_plan(codes: int, step_ms: Mapping[int, float]) -> list[CodeStep]:
    """The steps that decode so many codes in the least time, large ones first; of equal ones, the fewest.

    Args:
        codes: how many.
        step_ms: the time of a step, by its size: one size, or two.
    """
    large, small = max(step_ms), min(step_ms)
    most = -(-codes // large)
    if large == small:
        return plan_codes(codes, large)

    rests = [max(0, codes - count * large) for count in range(most + 1)]
    plans = [[large] * count + [small] * -(-rest // small) for count, rest in enumerate(rests)]
    sizes = min(plans, key=lambda plan: (sum(step_ms[size] for size in plan), len(plan)))
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return [CodeStep(size, start, min(size, codes - start)) for size, start in zip(sizes, starts, strict=True)]


def _timed_step(stream: Stream, size: int, clock: Clock, say: Callable[[str], None]) -> StepTime:
    say(f"timing a step of {size} codes")
    run, window = stream.steps[size], np.ascontiguousarray(stream.latent[..., :size])
    _, cache = run(window, np.zeros(stream.cache_numel, np.float32))  # takes the memory that later runs have
    took: list[float] = []
    while len(took) < (SLOW_REPEATS if took and took[0] > SLOW_S else REPEATS):
        begun = clock()
        _, cache = run(window, cache)
        took.append(clock() - begun)
    ms = MS_PER_S * median(took)
    return StepTime(size, ms, ms / size, ms / size / stream.code_ms, len(took), max(took) / min(took))


Series = list[float]
"""Milliseconds that have passed behind each chunk."""


class Run(NamedTuple):
    """Codes that arrive in some way, and whether every prefix is decoded again."""

    way: Chunks
    again: bool


def _foretold(way: Chunks, again: bool, length: int, step_ms: Mapping[int, float]) -> Series:
    """The times of a stream, from those of steps."""
    ends = way.ends(length)
    if again:
        return list(accumulate(sum(step_ms[step.size] for step in cheapest_plan(end, step_ms)) for end in ends))
    plan = plan_codes(length, way.then, way.small)
    return [sum(step_ms[step.size] for step in plan if step.start < end) for end in ends]


def _affordable(foretold: Mapping[Run, Series]) -> list[Run]:
    """The runs that are done: the cheapest, as long as there is time for them."""
    left = MS_PER_S * MOST_S
    chosen = set()
    for run, series in sorted(foretold.items(), key=lambda item: item[1][-1]):
        left -= series[-1]
        if left >= 0:
            chosen.add(run)
    return [run for run in foretold if run in chosen]


def _run_once(stream: Stream, way: Chunks, clock: Clock) -> Series:
    ends = way.ends(stream.length)
    done, passed, begun = 0, [], clock()
    for audio in stream_codes(
        _arriving(stream.latent, ends),
        stream.steps,
        way.then,
        way.small,
        stream.cache_numel,
        stream.samples_per_code,
    ):
        done += audio.size // stream.samples_per_code
        if done in ends:
            passed.append(MS_PER_S * (clock() - begun))
    return passed


def _run_again(stream: Stream, way: Chunks, step_ms: Mapping[int, float], clock: Clock) -> Series:
    ends = way.ends(stream.length)
    plans = [cheapest_plan(end, step_ms) for end in ends]
    passed, begun = [], clock()
    for end, plan in zip(ends, plans, strict=True):
        prefix = stream.latent[..., :end]
        walk_codes(prefix, stream.steps, plan, stream.cache_numel, stream.samples_per_code)
        passed.append(MS_PER_S * (clock() - begun))
    return passed


def _arriving(latent: CodeArray, ends: Sequence[int]) -> Iterator[CodeArray]:
    for start, end in zip([0, *ends], ends, strict=False):
        yield latent[..., start:end]


def _told(
    way: Chunks, length: int, foretold: Mapping[Run, Series], measured: Mapping[Run, Series]
) -> Iterator[StreamTime]:
    """The totals at the ends of those chunks with which a quarter, half and all of the codes are there."""
    once, again = Run(way, False), Run(way, True)
    alike = measured if once in measured and again in measured else foretold
    ends = way.ends(length)
    places = [next(place for place, end in enumerate(ends) if end * share >= length) for share in SHARES]

    def total(run: Run, place: int) -> Total:
        ms = measured.get(run, foretold[run])[place]
        return Total(ms, ms / ends[place], run not in measured)

    for place in dict.fromkeys(places):
        first = total(once, 0).ms
        ratio = alike[again][place] / alike[once][place]
        yield StreamTime(str(way), ends[place], first, total(once, place), total(again, place), ratio)
