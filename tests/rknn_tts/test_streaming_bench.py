"""Streams that are timed, with steps that take a known time on a clock of the test's own; sums are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from rknn_tts_runtime.stateful import CodeArray

from rknn_tts.streaming_bench import Chunks, Stream, StreamingBench, StreamTime, bench_stream, cheapest_plan

RATE, NUMEL = 2, 3


class Steps:
    """Steps of known times; each sample is the running sum of the codes so far, which the cache holds.

    Attributes:
        now: what the clock shows.
        runs: sizes of all steps that ran.
        seen: the sum behind each, so that one can tell whether a stream went on or began anew.
    """

    def __init__(self, seconds: dict[int, float]) -> None:
        self.now, self.seconds = 1000.0, seconds
        self.runs: list[int] = []
        self.seen: list[float] = []

    def stream(self, length: int) -> Stream:
        longest = max(length, *self.seconds)
        runs = dict.fromkeys(self.seconds, self._run)
        return Stream(np.ones((1, 1, longest), np.float32), length, runs, NUMEL, RATE, sample_rate=25)

    def _run(self, window: CodeArray, cache: CodeArray) -> tuple[CodeArray, CodeArray]:
        size = window.shape[-1]
        self.now += self.seconds[size]
        self.runs.append(size)
        total = cache[0] + window.sum()
        self.seen.append(float(total))
        return np.full((1, 1, RATE * size), total), np.full(NUMEL, total, np.float32)


def benched(seconds: dict[int, float], length: int) -> tuple[StreamingBench, Steps]:
    steps = Steps(seconds)
    return bench_stream(steps.stream(length), lambda: steps.now, lambda text: None), steps


def of_way(bench: StreamingBench, chunks: str) -> list[StreamTime]:
    return [stream for stream in bench.streams if stream.chunks == chunks]


def figures(bench: StreamingBench, chunks: str) -> list[tuple[float, ...]]:
    return [
        (each.codes, *(round(ms, 6) for ms in (each.first_audio_ms, each.with_state.ms, each.again.ms)))
        for each in of_way(bench, chunks)
    ]


def test_step_is_timed_by_the_median_behind_one_that_is_not_counted() -> None:
    bench, steps = benched({16: 0.010, 64: 0.030}, 192)
    small, large = bench.steps
    # A code of 2 samples at 25 Hz sounds 80 ms: 0.625 / 80 and 0.46875 / 80.
    assert bench.code_ms == 80
    assert (small.codes, round(small.ms, 6), small.runs) == (16, 10, 5)
    assert (round(small.ms_a_code, 6), round(small.real_time_factor, 9)) == (0.625, 0.0078125)
    assert (large.codes, round(large.ms, 6), round(large.ms_a_code, 6)) == (64, 30, 0.46875)
    assert steps.runs[:12] == [16] * 6 + [64] * 6


def test_spread_is_the_longest_run_over_the_shortest() -> None:
    class Uneven(Steps):
        def _run(self, window: CodeArray, cache: CodeArray) -> tuple[CodeArray, CodeArray]:
            self.now += {1: 0.02, 2: 0.01, 3: 0.03}.get(len(self.runs), 0)
            return super()._run(window, cache)

    steps = Uneven({4: 0.02})
    (step,) = bench_stream(steps.stream(4), lambda: steps.now, lambda text: None).steps
    # The counted runs take 40, 30, 50, 20 and 20 ms.
    assert (round(step.ms, 6), round(step.spread, 6)) == (30, 2.5)


def test_step_is_timed_fewer_times_when_it_is_slow() -> None:
    bench, _ = benched({16: 0.010, 64: 2.5}, 16)
    assert [step.runs for step in bench.steps] == [5, 3]


def test_totals_are_linear_with_a_state_and_quadratic_without() -> None:
    # Four steps of 16 take longer than one of 64, three take as long; so of k chunks of 16, k // 4 large ones and
    # k % 4 small ones decode the prefix: 10, 20, 30, 30, 40, 50, 60, 60, 70, 80, 90, 90 ms.
    bench, _ = benched({16: 0.010, 64: 0.030}, 192)
    assert figures(bench, "16") == [(48, 10, 30, 60), (96, 10, 60, 180), (192, 10, 120, 630)]
    # 30, 60 and 90 ms; a quarter of the codes is there with the first chunk.
    assert figures(bench, "64") == [(64, 30, 30, 30), (128, 30, 60, 90), (192, 30, 90, 180)]
    # Chunks of 16, 64, 64 and 48: steps of 16, 64, 64 and three of 16; prefixes of 16 (10 ms), 80 (30 + 10), 144
    # (2 * 30 + 10) and 192 (90).
    assert figures(bench, "16, then 64") == [(80, 10, 40, 50), (144, 10, 70, 120), (192, 10, 100, 210)]
    (*_, last) = of_way(bench, "16")
    assert round(last.ratio, 6) == 5.25
    assert [round(total.ms_a_code, 6) for total in (last.with_state, last.again)] == [0.625, 3.28125]
    assert not any(total.computed for each in bench.streams for total in (each.with_state, each.again))


def test_ratio_is_of_what_is_alike_when_a_total_is_computed() -> None:
    class Slowing(Steps):
        """Streams at half the speed at which the steps were timed."""

        def _run(self, window: CodeArray, cache: CodeArray) -> tuple[CodeArray, CodeArray]:
            self.now += self.seconds[window.shape[-1]] * (len(self.runs) >= 4)
            return super()._run(window, cache)

    steps = Slowing({16: 3.0})
    bench = bench_stream(steps.stream(192), lambda: steps.now, lambda text: None)
    # A step was timed at 3 s: 12 of them with a state, which take 72 s now, and 78 again, which are not run: 234 s.
    (*_, last) = of_way(bench, "16")
    assert (round(last.with_state.ms), round(last.again.ms), last.again.computed) == (72_000, 234_000, True)
    assert (round(last.ratio, 6), round(bench.steps[0].ms)) == (6.5, 3000)


def test_every_prefix_begins_anew_and_a_stream_goes_on() -> None:
    _, steps = benched({4: 0.001}, 10)
    streamed = steps.seen[6:]  # behind the timing of the step
    assert streamed == [4, 8, 10, 4, 4, 8, 4, 8, 10]


def test_last_chunk_is_padded_when_it_is_short() -> None:
    bench, _ = benched({4: 0.001}, 10)
    assert figures(bench, "4") == [(4, 1, 1, 1), (8, 1, 2, 3), (10, 1, 3, 6)]


@pytest.mark.parametrize("length", [1, 3])
def test_stream_is_one_step_when_it_is_shorter(length: int) -> None:
    bench, _ = benched({4: 0.001, 8: 0.0015}, length)
    assert figures(bench, "4") == [(length, 1, 1, 1)]
    assert figures(bench, "8") == [(length, 1.5, 1.5, 1)]
    assert figures(bench, "4, then 8") == [(length, 1, 1, 1)]


def test_dearest_runs_are_computed_when_all_would_take_too_long() -> None:
    # By hand as above, in seconds for ms: with a state 12, 9 and 10 s, again 63, 18 and 21 s: 133 in all, of which all
    # but the 63 fit into 120 s.
    bench, steps = benched({16: 1.0, 64: 3.0}, 192)
    (*_, small), (*_, large), (*_, both) = (of_way(bench, way) for way in ("16", "64", "16, then 64"))
    assert (small.again.computed, large.again.computed, both.again.computed) == (True, False, False)
    assert (round(small.again.ms), round(large.again.ms), round(both.again.ms)) == (63_000, 18_000, 21_000)
    assert not any(each.with_state.computed for each in bench.streams)
    # 6 and 4 timed steps; streams of 12, 3 and 6; 6 large ones again, and 1, 2, 3 and 3.
    assert len(steps.runs) == 10 + 21 + 6 + 9


@pytest.mark.parametrize(
    ("codes", "step_ms", "sizes"),
    [
        (48, {16: 10.0, 64: 30.0}, [64]),  # as long as three, and one
        (48, {16: 9.0, 64: 30.0}, [16, 16, 16]),
        (80, {16: 10.0, 64: 30.0}, [64, 16]),
        (80, {16: 5.0, 64: 30.0}, [16] * 5),
        (80, {16: 40.0, 64: 30.0}, [64, 64]),
        (130, {64: 30.0}, [64, 64, 64]),
        (1, {16: 10.0, 64: 30.0}, [16]),
    ],
)
def test_cheapest_plan_takes_the_least_time(codes: int, step_ms: dict[int, float], sizes: list[int]) -> None:
    plan = cheapest_plan(codes, step_ms)
    assert [step.size for step in plan] == sizes
    assert sum(step.valid for step in plan) == codes
    assert [step.start for step in plan] == [sum(sizes[:place]) for place in range(len(sizes))]


@pytest.mark.parametrize(
    ("chunks", "length", "ends"),
    [
        (Chunks(16, 16), 48, [16, 32, 48]),
        (Chunks(16, 64), 192, [16, 80, 144, 192]),
        (Chunks(16, 64), 80, [16, 80]),
        (Chunks(64, 64), 10, [10]),
    ],
)
def test_chunks_end_with_the_stream(chunks: Chunks, length: int, ends: list[int]) -> None:
    assert chunks.ends(length) == ends
