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
from statistics import median

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
    """

    codes: int
    ms: float
    ms_a_code: float
    real_time_factor: float
    runs: int


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
        ratio: how many times as long that takes.
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
    foretold = {way: _foretold(way, stream.length, step_ms) for way in ways}
    run = _affordable([series[-1] for way in ways for series in foretold[way]])
    streams: list[StreamTime] = []
    for place, way in enumerate(ways):
        with_state, again = foretold[way]
        if run[2 * place]:
            say(f"streaming {stream.length} codes in chunks of {way}")
            with_state = _run_with_state(stream, way, clock)
        if run[2 * place + 1]:
            say(f"decoding every prefix again in chunks of {way}")
            again = _run_again(stream, way, step_ms, clock)
        streams += _told(way, stream.length, (with_state, not run[2 * place]), (again, not run[2 * place + 1]))
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
    return StepTime(size, ms, ms / size, ms / size / stream.code_ms, len(took))


Series = list[float]
"""Milliseconds that have passed behind each chunk."""


def _foretold(way: Chunks, length: int, step_ms: Mapping[int, float]) -> tuple[Series, Series]:
    """The times of a stream with a state and of one without, from those of steps."""
    ends = way.ends(length)
    plan = plan_codes(length, way.then, way.small)
    with_state = [sum(step_ms[step.size] for step in plan if step.start < end) for end in ends]
    alone = [sum(step_ms[step.size] for step in cheapest_plan(end, step_ms)) for end in ends]
    return with_state, np.cumsum(alone).tolist()


def _affordable(foretold: Sequence[float]) -> list[bool]:
    """Which of these runs, of so many milliseconds each, are done: the cheapest, as long as there is time for them."""
    left = MS_PER_S * MOST_S
    chosen = [False] * len(foretold)
    for place in sorted(range(len(foretold)), key=lambda each: foretold[each]):
        left -= foretold[place]
        chosen[place] = left >= 0
    return chosen


def _run_with_state(stream: Stream, way: Chunks, clock: Clock) -> Series:
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
    way: Chunks, length: int, with_state: tuple[Series, bool], again: tuple[Series, bool]
) -> Iterator[StreamTime]:
    """The totals at the ends of those chunks with which a quarter, half and all of the codes are there."""
    ends = way.ends(length)
    places = [next(place for place, end in enumerate(ends) if end * share >= length) for share in SHARES]
    for place in dict.fromkeys(places):
        once, anew = (
            Total(series[place], series[place] / ends[place], computed) for series, computed in (with_state, again)
        )
        yield StreamTime(str(way), ends[place], with_state[0][0], once, anew, anew.ms / once.ms)
