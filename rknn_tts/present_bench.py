"""What a person sees of steps that were timed."""

from __future__ import annotations

from collections.abc import Iterable

from rknn_tts.bench import Bench
from rknn_tts.blocks import Block, Facts, Notice, Row, Table
from rknn_tts.numbers import number
from rknn_tts.present import MODELLED, source_text
from rknn_tts.streaming_bench import MS_PER_S, StepTime, StreamTime, Total

_DIGITS = 3
"""Of times, which differ by more from run to run."""

FACTOR = "real-time factor: a code's time over the time that it sounds; below 1 the decoder keeps up"

MEANING = (
    "with state: each code is decoded once, so the time of a code stays what it is (linear); again: every prefix is "
    "decoded anew when its chunk arrives, in those of the steps that take the least time, so it grows (quadratic)"
)

COMPUTED = (
    "computed: added up from the times of steps, for it would take too long to run; the ratio is then of two such sums"
)


_UNSTEADY = 1.5
"""Longest over shortest run of a step from which on the machine is not left to it (1.1 on a quiet one)."""


def bench_blocks(bench: Bench) -> list[Block]:
    """What was timed on what, the steps, the streams, the modelled cost, and what is missing."""
    measured = bench.measured
    seconds = measured.codes * measured.code_ms / MS_PER_S
    machine = bench.machine
    threads = f"{machine.threads} thread{'s' * (machine.threads > 1)}"
    pairs = (
        ("stage", f"{bench.family} {bench.stage}"),
        ("source", source_text(bench.source)),
        ("stream", f"{measured.codes} random codes of {number(measured.code_ms)} ms: {number(seconds)} s of audio"),
        ("machine", f"{machine.processor}, {threads}"),
        ("graph", f"the export before any pass, fp32, onnxruntime {machine.onnxruntime}, every optimisation"),
    )
    blocks: list[Block] = [Facts(pairs), _steps(measured.steps), _streams(measured.codes, measured.streams)]
    if bench.modelled:
        blocks.append(_modelled(bench))
        blocks.append(Notice("note", f"the cost on {bench.target} is {MODELLED}", "warn"))
    blocks += [Notice("note", sentence) for sentence in (FACTOR, MEANING)]
    if any(total.computed for each in measured.streams for total in (each.with_state, each.again)):
        blocks.append(Notice("note", COMPUTED))
    blocks += [Notice("UNSTEADY", _unsteady(step), "warn") for step in measured.steps if step.spread > _UNSTEADY]
    return blocks + [Notice("note", note, "warn") for note in bench.notes]


def _steps(steps: Iterable[StepTime]) -> Table:
    rows = [
        Row((f"{step.codes} codes", *_times(step.ms, step.ms_a_code, step.real_time_factor), f"{step.runs}"))
        for step in steps
    ]
    columns = ("step", "ms", "ms a code", "real-time factor", "runs")
    return Table("Steps on this machine (median)", columns, tuple(rows), frozenset({1, 2, 3, 4}))


def _streams(codes: int, streams: Iterable[StreamTime]) -> Table:
    rows = [
        Row(
            (
                each.chunks,
                f"{each.codes}",
                _time(each.first_audio_ms),
                *_total(each.with_state),
                *_total(each.again),
                f"{number(each.ratio, _DIGITS)}x",
            )
        )
        for each in streams
    ]
    columns = ("chunks of", "codes", "first audio, ms", "with state, ms", "a code", "again, ms", "a code", "ratio")
    title = f"A stream of {codes} codes: with a state, and decoding the prefix again at every chunk"
    return Table(title, columns, tuple(rows), frozenset(range(1, len(columns))))


def _unsteady(step: StepTime) -> str:
    return (
        f"the longest run of a step of {step.codes} codes took {number(step.spread, _DIGITS)}x as long as the "
        "shortest: something else uses the processor, so no time here is good for much; run the command again when it "
        "is quiet"
    )


def _modelled(bench: Bench) -> Table:
    rows = [
        Row((f"{step.codes} codes", *_times(step.ms, step.ms_a_code, step.real_time_factor), step.manifest))
        for step in bench.modelled
    ]
    columns = (f"step on {bench.target}", "modelled ms", "ms a code", "real-time factor", "manifest")
    return Table(f"Steps on {bench.target} ({MODELLED})", columns, tuple(rows), frozenset({1, 2, 3}), wraps=4)


def _times(*figures: float) -> tuple[str, ...]:
    return tuple(number(figure, _DIGITS) for figure in figures)


def _total(total: Total) -> tuple[str, str]:
    return f"{_time(total.ms)}{' computed' * total.computed}", number(total.ms_a_code, _DIGITS)


def _time(ms: float) -> str:
    """Whole milliseconds of what takes many."""
    return f"{ms:.0f}" if ms >= 100 else number(ms, _DIGITS)
