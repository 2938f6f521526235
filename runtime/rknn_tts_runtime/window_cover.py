"""Covers an utterance by the cheapest sequence of windows of a ladder, whose engines have different widths.

A rung is an engine of one width W = left + emitted + right. A window of it lies inside the utterance, start >= 0 and
start + W <= N, and the frames that it may emit depend on its place:

    place       plain (window frames)     trimmed, with m = (trim - emitted) / 2
    beginning   [0, W - right)            [0, emitted + m), of the samples of window frames [0, trim)
    between     [left, left + emitted)    the same, of the samples of window frames [left - m, left - m + trim)
    end         [left, W)                 [W - emitted - m, W), of the samples of window frames [W - trim, W)
    whole       [0, W) where N = W        (none: a trimmed engine speaks an utterance in two windows at least)

Frames beyond the utterance are padding, zeros on the right with the mask zero there. A masked engine is exact on them,
so it competes for any utterance shorter than its window, with that one window. An engine that is neither masked nor
trimmed pads only where nothing else holds the utterance, and a trimmed one never does.

The cheapest sequence is a shortest path over "frames emitted so far": what can be reached from a frame can be reached
from any later one too, so of a rung only the window that gets furthest counts. Far from both ends of a long utterance
the path repeats the window that costs least per emitted frame; these are put in at once, and the search is left with
a stretch of `SEARCHED_WIDTHS` windows.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.windows import FloatArray, cut_window

BEGINNING, BETWEEN, END, WHOLE = 0, 1, 2, 3
"""Places of a window in its utterance. The first three are the places in what a trimmed engine takes as `place`."""

PLACES = 3
"""Numbers in that input, [1, 3, 1, 1]."""

SEARCHED_WIDTHS = 8
"""Widths of the widest window that are searched in full; what is longer repeats one window in its middle."""

RunRung = Callable[..., "npt.NDArray[Any]"]
"""Runs one window: takes the windows of the cut arrays in their order, and `place`, float32 [1, 3, 1, 1] for a trimmed
engine, else None; returns the `W * hop` or `trim * hop` samples, of any shape."""


class Rung(NamedTuple):
    """One engine of a ladder.

    Attributes:
        width: width W of its window in frames.
        left: frames of context before the emitted ones.
        right: frames of context after them.
        trim: frames whose samples come out; None where all of its window's do.
        masked: whether padding leaves what it makes of the other frames alone.
        cost: of a run: milliseconds, or what else is to be least in sum.
    """

    width: int
    left: int
    right: int
    trim: int | None
    masked: bool
    cost: float


class CoverStep(NamedTuple):
    """One window of a cover, in frames of the utterance.

    Attributes:
        rung: the engine that runs it, by its place in the ladder.
        place: `BEGINNING`, `BETWEEN`, `END` or `WHOLE`.
        start: the frame on which the window starts.
        valid: how many frames of the utterance it holds, from its start on; the rest of its width is padding.
        emit_start: the first frame it emits.
        emit_stop: the frame after the last it emits.
    """

    rung: int
    place: int
    start: int
    valid: int
    emit_start: int
    emit_stop: int


class _Option(NamedTuple):
    """What may come next on the way: compared in this order."""

    cost: int
    width: int
    rung: int
    place: int
    start: int
    reached: int


def cover_utterance(frames: int, rungs: Sequence[Rung]) -> list[CoverStep]:
    """The windows that emit every frame of an utterance once, in order, at the least summed cost.

    Of sequences that cost the same, the one whose first window is the narrowest, then whose second is, and so on: the
    first audio comes soonest.

    Args:
        frames: length N of the utterance.
        rungs: the ladder.

    Raises:
        BadInput: the ladder's windows cannot hold it: it is shorter than they are, and none of them may pad.
        ValueError: `frames` is not positive, there are no rungs, or one is impossible.
    """
    if frames < 1:
        raise ValueError(f"an utterance needs at least one frame, not {frames}")
    if not rungs:
        raise ValueError("a ladder needs one rung at least")
    for rung in rungs:
        _check(rung)
    costs = _whole_costs(rungs)
    inner = min(
        range(len(rungs)), key=lambda index: (Fraction(costs[index], _emitted(rungs[index])), rungs[index].width)
    )
    repeated = _repeats(frames, rungs, inner)
    found = _cheapest(frames - repeated * _emitted(rungs[inner]), rungs, costs)
    if repeated and found:
        return _with_repeats(found, frames, rungs[inner], inner, repeated)
    masked = [
        (costs[index], rung.width, index) for index, rung in enumerate(rungs) if rung.masked and rung.width > frames
    ]
    if masked and (not found or min(masked)[0] < sum(costs[step.rung] for step in found)):
        return [CoverStep(min(masked)[2], WHOLE, 0, frames, 0, frames)]
    plain = [(rung.width, index) for index, rung in enumerate(rungs) if rung.trim is None and rung.width > frames]
    if not found and plain:
        return [CoverStep(min(plain)[1], WHOLE, 0, frames, 0, frames)]
    if not found:
        raise BadInput(_nothing_fits(frames, rungs))
    return found


def walk_cover(
    runs: Sequence[RunRung], arrays: Sequence[FloatArray], rungs: Sequence[Rung], hop: int
) -> Iterator[tuple[CoverStep, npt.NDArray[Any]]]:
    """Decode an utterance window by window, each by its rung, giving each step with the samples it emits.

    What the utterance is covered by is settled before anything runs.

    Args:
        runs: what runs each rung, in their order.
        arrays: what is cut: arrays with the frames of the utterance along their last axis, all of one length.
        rungs: the ladder.
        hop: samples per frame.

    Returns:
        Each step and its samples `[(emit_stop - emit_start) * hop]`.

    Raises:
        BadInput: as `cover_utterance`.
        ValueError: the arrays differ in length or have none, there is not one run a rung, the ladder is wrong, or a run
            does not return the samples of its window.
    """
    if hop < 1:
        raise ValueError(f"a frame needs at least one sample, not {hop}")
    if len(runs) != len(rungs):
        raise ValueError(f"{len(rungs)} rungs need a run each, not {len(runs)}")
    lengths = {array.shape[-1] if array.ndim else 0 for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"the arrays to cut must have one common number of frames, not {sorted(lengths)}")
    return _walk(cover_utterance(lengths.pop(), rungs), runs, arrays, rungs, hop)


def _walk(
    steps: Sequence[CoverStep], runs: Sequence[RunRung], arrays: Sequence[FloatArray], rungs: Sequence[Rung], hop: int
) -> Iterator[tuple[CoverStep, npt.NDArray[Any]]]:
    for step in steps:
        rung = rungs[step.rung]
        given = place_input(step.place) if rung.trim is not None else None
        windows = [cut_window(array, step.start, step.valid, rung.width) for array in arrays]
        samples = np.asarray(runs[step.rung](*windows, place=given)).reshape(-1)
        first, count = sampled_frames(rung, step.place)
        if samples.size != count * hop:
            raise ValueError(
                f"the window at frame {step.start} gave {samples.size} samples, expected {count} frames x {hop}"
            )
        offset = step.start + first
        yield step, samples[(step.emit_start - offset) * hop : (step.emit_stop - offset) * hop]


def place_input(place: int) -> npt.NDArray[np.float32]:
    """What a trimmed engine takes at `place`, [1, 3, 1, 1]: 1 at the beginning, between or the end, else 0."""
    given = np.zeros((1, PLACES, 1, 1), np.float32)
    given[0, place] = 1
    return given


def sampled_frames(rung: Rung, place: int) -> tuple[int, int]:
    """The window's frame on which the samples of a run start, and of how many frames they are."""
    if rung.trim is None:
        return 0, rung.width
    return (0, rung.left - _margin(rung), rung.width - rung.trim)[place], rung.trim


def _check(rung: Rung) -> None:
    if min(rung.width, _emitted(rung)) < 1 or min(rung.left, rung.right) < 0:
        raise ValueError(
            f"a window of {rung.width} frames cannot hold {rung.left} + {rung.right} frames of context and emit any"
        )
    if not (rung.cost > 0 and math.isfinite(rung.cost)):
        raise ValueError(f"a run costs something, not {rung.cost}")
    if rung.trim is None:
        return
    edges = rung.trim - _emitted(rung)
    if rung.left != rung.right or edges < 0 or edges % 2 or edges // 2 > rung.left:
        raise ValueError(
            f"a window of {rung.width} frames is trimmed alike on both sides and keeps what it emits, not {rung}"
        )
    if rung.masked:
        raise ValueError(f"a trimmed window takes no padding, so it is not masked: {rung}")


def _emitted(rung: Rung) -> int:
    return rung.width - rung.left - rung.right


def _margin(rung: Rung) -> int:
    """m: frames beyond the emitted ones, on either side, whose samples come out."""
    return rung.left if rung.trim is None else (rung.trim - _emitted(rung)) // 2


def _whole_costs(rungs: Sequence[Rung]) -> list[int]:
    """The costs as whole numbers: 3 x 0.1 is to be as much as 0.3, in whatever order it is summed."""
    exact = [Fraction(repr(float(rung.cost))) for rung in rungs]
    scale = max(cost.denominator for cost in exact)
    while any((cost * scale).denominator != 1 for cost in exact):
        scale *= 10
    return [int(cost * scale) for cost in exact]


def _repeats(frames: int, rungs: Sequence[Rung], inner: int) -> int:
    """How many windows of the rung `inner` are put into the middle of the utterance unsearched."""
    searched = SEARCHED_WIDTHS * max(rung.width for rung in rungs)
    return max(0, (frames - searched) // _emitted(rungs[inner]))


def _with_repeats(found: Sequence[CoverStep], frames: int, rung: Rung, index: int, repeated: int) -> list[CoverStep]:
    """The cover `found` of a shorter utterance with `repeated` windows of one rung put in, where they fit latest."""
    emitted = _emitted(rung)
    shift = repeated * emitted
    shorter = frames - shift
    places = [
        place
        for place in range(1, len(found))
        if rung.left <= found[place].emit_start <= shorter - rung.right and found[place].place != WHOLE
    ]
    place = places[-1]
    first = found[place].emit_start
    put_in = [
        CoverStep(index, BETWEEN, stop - rung.left, rung.width, stop, stop + emitted)
        for stop in range(first, first + shift, emitted)
    ]
    shifted = [
        step._replace(start=step.start + shift, emit_start=step.emit_start + shift, emit_stop=step.emit_stop + shift)
        for step in found[place:]
    ]
    return [*found[:place], *put_in, *shifted]


def _cheapest(frames: int, rungs: Sequence[Rung], costs: Sequence[int]) -> list[CoverStep]:
    """The cheapest cover by windows without padding; empty where there is none."""
    fitting = [index for index, rung in enumerate(rungs) if rung.width <= frames]
    options: dict[int, list[_Option]] = {}
    waiting = [0]
    while waiting:
        emitted = waiting.pop()
        if emitted == frames or emitted in options:
            continue
        options[emitted] = list(_options(emitted, frames, rungs, costs, fitting))
        waiting.extend(option.reached for option in options[emitted])
    best: dict[int, _Option] = {}
    rest = {frames: 0}
    for emitted in sorted(options, reverse=True):
        ways = [
            option._replace(cost=option.cost + rest[option.reached])
            for option in options[emitted]
            if option.reached in rest
        ]
        if ways:
            best[emitted] = min(ways)
            rest[emitted] = best[emitted].cost
    steps = []
    emitted = 0
    while emitted != frames and emitted in best:
        way = best[emitted]
        steps.append(CoverStep(way.rung, way.place, way.start, rungs[way.rung].width, emitted, way.reached))
        emitted = way.reached
    return steps


def _options(
    emitted: int, frames: int, rungs: Sequence[Rung], costs: Sequence[int], fitting: Sequence[int]
) -> Iterator[_Option]:
    """The windows that may come next where `emitted` frames of `frames` are emitted: of each rung those furthest on."""
    for index in fitting:
        width, left, right, trim = rungs[index][:4]
        if not emitted and trim is None and width == frames:
            yield _Option(costs[index], width, index, WHOLE, 0, frames)
        elif not emitted:
            reached = width - right if trim is None else width - left - right + _margin(rungs[index])
            yield _Option(costs[index], width, index, BEGINNING, 0, reached)
        else:
            end_from = frames - width + (left if trim is None else width - trim + _margin(rungs[index]))
            start = min(emitted - left, frames - width)
            reached = start + width - right
            if end_from <= emitted:
                yield _Option(costs[index], width, index, END, frames - width, frames)
            elif start >= 0 and reached > emitted:
                yield _Option(costs[index], width, index, BETWEEN, start, reached)


def _nothing_fits(frames: int, rungs: Sequence[Rung]) -> str:
    """What is said where no window of a ladder holds an utterance."""
    widths = ", ".join(str(width) for width in sorted({rung.width for rung in rungs}))
    return (
        f"The windows of this ladder ({widths} frames) cannot hold an utterance of {frames} frames: a trimmed engine "
        "takes no padding. Name an engine with a masked window in the plan beside them, or say more at once."
    )
