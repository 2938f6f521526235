"""Covers by a ladder: the least cost of all sequences, every frame once, and the samples of the undivided decode."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rknn_tts_runtime import plan_windows
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.window_cover import (
    BEGINNING,
    BETWEEN,
    END,
    SEARCHED_WIDTHS,
    WHOLE,
    CoverStep,
    Rung,
    cover_utterance,
    place_input,
    sampled_frames,
    walk_cover,
)

Floats = NDArray[np.float32]


def plain(width: int, context: int, cost: float) -> Rung:
    return Rung(width, context, context, None, False, cost)


def masked(width: int, context: int, cost: float) -> Rung:
    return Rung(width, context, context, None, True, cost)


def trimmed(width: int, context: int, margin: int, cost: float) -> Rung:
    return Rung(width, context, context, width - 2 * context + 2 * margin, False, cost)


LADDER = [masked(128, 32, 28.0), trimmed(256, 32, 2, 40.0), trimmed(448, 32, 2, 67.0)]


@pytest.mark.parametrize(
    ("frames", "steps"),
    [
        (90, [(0, WHOLE, 0, 90, 0, 90)]),
        (128, [(0, WHOLE, 0, 128, 0, 128)]),
        # The widest begins (386 frames) and ends: 134, against 40 + 67 of the middle one (194) and the widest.
        (500, [(1, BEGINNING, 0, 256, 0, 194), (2, END, 52, 448, 194, 500)]),
        # 386 + 384 + 386 frames = 1156 hold 1000; two of the widest and the middle one 386 + 384 + 194 = 964 do not.
        (1000, [(2, BEGINNING, 0, 448, 0, 386), (2, BETWEEN, 354, 448, 386, 770), (2, END, 552, 448, 770, 1000)]),
    ],
)
def test_cover_matches_hand_made_one_when_given_length(
    frames: int, steps: list[tuple[int, int, int, int, int, int]]
) -> None:
    assert cover_utterance(frames, LADDER) == [CoverStep(*step) for step in steps]


rungs_of_any_kind = st.builds(
    lambda context, emitted, margin, kind, cost: {
        "plain": plain(2 * context + emitted, context, cost),
        "masked": masked(2 * context + emitted, context, cost),
        "trimmed": trimmed(2 * context + emitted, context, min(margin, context), cost),
    }[kind],
    context=st.integers(0, 5),
    emitted=st.integers(1, 9),
    margin=st.integers(0, 2),
    kind=st.sampled_from(["plain", "masked", "trimmed"]),
    cost=st.integers(1, 30).map(float),
)


def exact_frames(rung: Rung, place: int, start: int) -> tuple[int, int]:
    """Frames of the utterance that a window emits rightly: the preamble of the contract's `Trim`, and of contexts."""
    emitted = rung.width - rung.left - rung.right
    margin = rung.left if rung.trim is None else (rung.trim - emitted) // 2
    if place == BEGINNING:
        return start, start + (rung.width - rung.right if rung.trim is None else rung.trim - margin)
    if place == BETWEEN:
        return start + rung.left, start + rung.left + emitted
    return start + rung.width - (
        rung.width - rung.left if rung.trim is None else rung.trim - margin
    ), start + rung.width


def least_cost(frames: int, rungs: list[Rung]) -> float | None:
    """Of all sequences of windows at all starts; None where there is no cover without padding but by a masked one."""

    @cache
    def least(emitted: int) -> float:
        if emitted == frames:
            return 0.0
        found = [float("inf")]
        for rung in rungs:
            for start in range(frames - rung.width + 1):
                places = [BETWEEN] + [BEGINNING] * (start == 0) + [END] * (start + rung.width == frames)
                ranges = [exact_frames(rung, place, start) for place in places]
                if rung.trim is None and rung.width == frames:
                    ranges.append((0, frames))
                found += [rung.cost + least(min(stop, frames)) for first, stop in ranges if first <= emitted < stop]
        return min(found)

    whole = [rung.cost for rung in rungs if rung.masked and rung.width > frames]
    cost = min([least(0), *whole])
    return None if cost == float("inf") else cost


@given(frames=st.integers(1, 60), rungs=st.lists(rungs_of_any_kind, min_size=1, max_size=3))
def test_cover_costs_the_least_of_all_sequences_when_each_is_tried(frames: int, rungs: list[Rung]) -> None:
    least = least_cost(frames, rungs)
    assume(least is not None)
    assert sum(rungs[step.rung].cost for step in cover_utterance(frames, rungs)) == least


@given(frames=st.integers(1, 3000), rungs=st.lists(rungs_of_any_kind, min_size=1, max_size=4))
def test_cover_emits_every_frame_once_and_rightly_when_it_covers(frames: int, rungs: list[Rung]) -> None:
    try:
        steps = cover_utterance(frames, rungs)
    except BadInput:
        assume(False)
    assert steps[0].emit_start == 0
    assert steps[-1].emit_stop == frames
    assert all(earlier.emit_stop == later.emit_start for earlier, later in pairwise(steps))
    assert all(step.emit_start < step.emit_stop for step in steps)
    for step in steps:
        rung = rungs[step.rung]
        if rung.width > frames:
            assert step == CoverStep(step.rung, WHOLE, 0, frames, 0, frames)
            assert rung.trim is None
            continue
        assert step.valid == rung.width
        assert 0 <= step.start <= frames - rung.width
        if step.place == WHOLE:
            assert rung.width == frames
            assert rung.trim is None
            continue
        first, stop = exact_frames(rung, step.place, step.start)
        assert first <= step.emit_start
        assert step.emit_stop <= stop
        assert step.place != BEGINNING or step.start == 0
        assert step.place != END or step.start + rung.width == frames


@given(frames=st.integers(1, 700), left=st.integers(0, 40), emitted=st.integers(1, 40), right=st.integers(0, 40))
def test_cover_is_the_plan_of_windows_when_one_rung_is_plain(frames: int, left: int, emitted: int, right: int) -> None:
    width = left + emitted + right
    steps = cover_utterance(frames, [Rung(width, left, right, None, False, 7.5)])
    assert [tuple(step[2:]) for step in steps] == [tuple(step) for step in plan_windows(frames, width, left, right)]


@pytest.mark.parametrize(
    ("rungs", "rung"),
    [
        ([plain(20, 4, 1.0), masked(30, 4, 9.0), trimmed(25, 4, 1, 1.0)], 1),
        ([plain(40, 4, 1.0), plain(20, 4, 2.0), trimmed(25, 4, 1, 1.0)], 1),
        ([masked(40, 4, 3.0), masked(30, 4, 3.0)], 1),
    ],
)
def test_one_window_pads_a_masked_one_first_when_the_utterance_is_short(rungs: list[Rung], rung: int) -> None:
    assert cover_utterance(12, rungs) == [CoverStep(rung, WHOLE, 0, 12, 0, 12)]


def test_a_masked_window_pads_when_it_costs_less_than_the_narrow_ones() -> None:
    rungs = [plain(20, 4, 10.0), masked(60, 4, 19.0)]
    assert cover_utterance(30, rungs) == [CoverStep(1, WHOLE, 0, 30, 0, 30)]
    rungs = [plain(20, 4, 10.0), plain(60, 4, 19.0)]
    assert [step.rung for step in cover_utterance(30, rungs)] == [0, 0, 0][: len(plan_windows(30, 20, 4, 4))]


def test_cover_refuses_with_the_remedy_when_only_trimmed_windows_are_too_wide() -> None:
    with pytest.raises(
        BadInput, match=r"ladder \(25, 30 frames\) cannot hold an utterance of 24 frames: a trimmed .*masked"
    ):
        cover_utterance(24, [trimmed(30, 4, 1, 1.0), trimmed(25, 4, 1, 1.0)])


def test_a_trimmed_window_speaks_in_two_when_the_utterance_is_as_long_as_it() -> None:
    assert cover_utterance(30, [trimmed(30, 4, 1, 1.0)]) == [
        CoverStep(0, BEGINNING, 0, 30, 0, 23),
        CoverStep(0, END, 0, 30, 23, 30),
    ]


def test_the_narrowest_window_comes_first_when_orders_cost_the_same() -> None:
    # 76 + 96 frames either way: 26 + 56 frames = 82 hold 80, and 0.1 + 0.2 is 0.2 + 0.1.
    rungs = [plain(60, 4, 0.2), plain(30, 4, 0.1)]
    for ladder in (rungs, rungs[::-1]):
        steps = cover_utterance(80, ladder)
        assert [ladder[step.rung].width for step in steps] == [30, 60]


@pytest.mark.parametrize(
    ("narrow_cost", "wide_cost", "widths"),
    [
        (0.1, 0.3, [20, 20, 20]),  # as much, though three times the float 0.1 is more than the float 0.3
        (0.125, 0.3, [40]),  # 0.375, though 0.125 is 0.1 of one decimal
    ],
)
def test_costs_are_the_decimals_that_are_told_when_sequences_are_compared(
    narrow_cost: float, wide_cost: float, widths: list[int]
) -> None:
    rungs = [plain(20, 4, narrow_cost), plain(40, 4, wide_cost)]  # 40 frames: 16 + 12 + 12, or all at once
    assert [rungs[step.rung].width for step in cover_utterance(40, rungs)] == widths


def test_narrow_windows_come_before_a_padded_one_when_they_cost_the_same() -> None:
    rungs = [plain(20, 4, 10.0), masked(60, 4, 20.0)]  # 30 frames: 16 + 14
    assert [step.rung for step in cover_utterance(30, rungs)] == [0, 0]


def test_a_window_that_sees_far_does_not_start_before_the_utterance_when_a_narrow_one_is_first() -> None:
    # The narrow one first would cost as much, and the wide one then have to start at frame 1 - 5.
    rungs = [plain(1, 0, 0.5), trimmed(19, 5, 0, 1.0)]
    assert cover_utterance(19, rungs) == [
        CoverStep(1, BEGINNING, 0, 19, 0, 9),
        CoverStep(0, BETWEEN, 9, 1, 9, 10),
        CoverStep(1, END, 0, 19, 10, 19),
    ]


REPEATING = [
    (121, [trimmed(5, 1, 1, 11.0), trimmed(14, 6, 2, 2.0)]),  # the window that is repeated sees further than the last
    (76, [trimmed(2, 0, 0, 12.0), trimmed(5, 2, 0, 2.0), trimmed(5, 2, 0, 7.0)]),
    (129, [plain(13, 2, 9.0), plain(6, 1, 4.0), trimmed(9, 2, 2, 6.0)]),
    (104, [plain(12, 3, 9.0), plain(11, 2, 10.0), trimmed(8, 3, 1, 12.0)]),
]
"""Utterances longer than what is searched in full, so that one window is repeated in their middle."""


@pytest.mark.parametrize(("frames", "rungs"), REPEATING)
def test_cover_costs_the_least_and_stays_inside_when_one_window_is_repeated(frames: int, rungs: list[Rung]) -> None:
    assert frames > SEARCHED_WIDTHS * max(rung.width for rung in rungs)
    steps = cover_utterance(frames, rungs)
    assert sum(rungs[step.rung].cost for step in steps) == least_cost(frames, rungs)
    assert all(0 <= step.start <= frames - rungs[step.rung].width for step in steps)
    assert [step.emit_start for step in steps] == [0, *(step.emit_stop for step in steps[:-1])]


@pytest.mark.parametrize("frames", [9_001, 20_000, 100_000])
def test_cover_costs_no_more_than_a_bound_when_the_utterance_is_long(frames: int) -> None:
    rungs = [masked(109, 32, 26.0), trimmed(301, 32, 2, 44.3), trimmed(448, 32, 2, 67.1)]
    times_s = []
    for _ in range(3):  # the best of them: one may meet a collection of everybody's garbage
        start_s = time.process_time()
        steps = cover_utterance(frames, rungs)
        times_s.append(time.process_time() - start_s)
    assert min(times_s) < 0.1
    # No frame costs less than the widest window's, and all but one or two windows are it.
    least = (frames - 2 * 34) / 384 * 67.1
    assert least <= sum(rungs[step.rung].cost for step in steps) <= least + 67.1


FLOW, MARGIN, HOP = 3, 2, 2


def spread(values: Floats, reach: int) -> Floats:
    """Each with its neighbours up to `reach` away, weighted unevenly; zeros beyond both ends, as a convolution pads."""
    padded = np.pad(values, reach)
    return sum((tap + 1) * padded[tap : tap + len(values)] for tap in range(2 * reach + 1))  # type: ignore[return-value]


def upsampled(values: Floats) -> Floats:
    return np.repeat(values, HOP) * np.tile(np.arange(1, HOP + 1, dtype=np.float32), len(values))


def decoded(latent: Floats, mask: Floats) -> Floats:
    """Of a whole utterance: a flow, then a decoder."""
    return upsampled(spread(spread(latent * mask, FLOW) * mask, MARGIN))


@given(
    frames=st.integers(1, 200),
    rungs=st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from(["masked", "trimmed"]), st.integers(1, 9)),
        min_size=1,
        max_size=3,
    ),
)
def test_walk_gives_the_samples_of_the_whole_when_rungs_mix(frames: int, rungs: list[tuple[int, str, int]]) -> None:
    context = FLOW + MARGIN
    ladder = [
        masked(2 * context + emitted, context, float(cost))
        if kind == "masked"
        else trimmed(2 * context + emitted, context, MARGIN, float(cost))
        for emitted, kind, cost in rungs
    ]
    try:
        cover_utterance(frames, ladder)
    except BadInput:
        assume(False)

    def run_of(rung: Rung):  # type: ignore[no-untyped-def]
        def run(latent: Floats, mask: Floats, place: Floats | None) -> Floats:
            assert latent.shape == mask.shape == (rung.width,)
            if rung.trim is None:
                assert place is None
                return decoded(latent, mask)[None]
            assert place is not None
            assert place.shape == (1, 3, 1, 1)
            assert mask.all()
            starts = (0, rung.left - MARGIN, rung.width - rung.trim)
            flowed = spread(latent, FLOW)
            crop = sum(place[0, each, 0, 0] * flowed[start : start + rung.trim] for each, start in enumerate(starts))
            return upsampled(spread(crop, MARGIN))

        return run

    latent = np.random.default_rng(frames).integers(-9, 9, frames).astype(np.float32)
    mask = np.ones(frames, np.float32)
    walked = list(walk_cover([run_of(rung) for rung in ladder], [latent, mask], ladder, HOP))
    assert [step for step, _ in walked] == cover_utterance(frames, ladder)
    np.testing.assert_array_equal(np.concatenate([samples for _, samples in walked]), decoded(latent, mask))


def test_sampled_frames_are_those_of_the_contract_when_trimmed() -> None:
    rung = Rung(100, 32, 32, 40, False, 1.0)  # 36 emitted, m = 2
    assert [sampled_frames(rung, place) for place in (BEGINNING, BETWEEN, END)] == [(0, 40), (30, 40), (60, 40)]
    np.testing.assert_array_equal(place_input(END), np.array([[[[0]], [[0]], [[1]]]]))


@pytest.mark.parametrize(
    ("rung", "message"),
    [
        (Rung(10, 5, 5, None, False, 1.0), "emit any"),
        (Rung(10, -1, 5, None, False, 1.0), "emit any"),
        (Rung(10, 2, 3, 7, False, 1.0), "trimmed alike"),
        (Rung(10, 3, 3, 5, False, 1.0), "trimmed alike"),
        (Rung(10, 3, 3, 12, False, 1.0), "trimmed alike"),
        (Rung(10, 3, 3, 6, True, 1.0), "not masked"),
        (Rung(10, 3, 3, None, False, 0.0), "costs something"),
        (Rung(10, 3, 3, None, False, float("nan")), "costs something"),
    ],
)
def test_cover_raises_when_a_rung_is_impossible(rung: Rung, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cover_utterance(20, [rung])


def test_cover_raises_when_there_is_no_frame_or_no_rung() -> None:
    with pytest.raises(ValueError, match="at least one frame"):
        cover_utterance(0, LADDER)
    with pytest.raises(ValueError, match="one rung at least"):
        cover_utterance(5, [])


@pytest.mark.parametrize(
    ("arrays", "hop", "runs", "message"),
    [
        ([np.zeros((1, 5), np.float32), np.zeros((1, 6), np.float32)], 1, 1, "one common number of frames"),
        ([], 1, 1, "one common number of frames"),
        ([np.zeros((1, 5), np.float32)], 0, 1, "one sample"),
        ([np.zeros((1, 5), np.float32)], 1, 2, "a run each"),
        ([np.zeros((1, 5), np.float32)], 2, 1, "gave 10 samples, expected 10 frames x 2"),
    ],
)
def test_walk_raises_when_what_it_is_given_does_not_agree(
    arrays: list[Floats], hop: int, runs: int, message: str
) -> None:
    def run(*windows: Floats, place: Floats | None) -> Floats:
        return windows[0]

    with pytest.raises(ValueError, match=message):
        list(walk_cover([run] * runs, arrays, [plain(10, 2, 1.0)], hop))
