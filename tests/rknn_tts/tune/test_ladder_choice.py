"""Which ladder is the best, of few enough windows to see it by hand."""

from __future__ import annotations

import pytest
from rknn_tts_runtime.window_cover import Rung

from rknn_tts.tune.ladder_choice import TIE, Offered, best_ladder, best_of, ladder_of


def window(name: str, width: int, cost: float, *, masked: bool = False, memory_mb: float = 10.0) -> Offered:
    """A window without context: it emits its width, wherever it stands."""
    return Offered(name, Rung(width, 0, 0, None, masked, cost), memory_mb)


SHORT = window("8m", 8, 4.0, masked=True)
MIDDLE = window("16p", 16, 5.0)
LONG = window("32p", 32, 7.0)
HALF_AND_HALF = {8: 0.5, 32: 0.5}


def test_best_ladder_takes_the_windows_that_fit_when_lengths_are_of_two_kinds() -> None:
    # 8 frames cost 4 by 8m alone; 32 cost 7 by 32p, 10 by 16p twice, 16 by 8m four times.
    found = best_ladder([SHORT, MIDDLE, LONG], HALF_AND_HALF, 2)
    assert found is not None
    assert (found.names, found.expected.ms, found.memory_mb) == (("8m", "32p"), 5.5, 20.0)
    assert found.expected.runs == (0.5, 0.5)


def test_best_ladder_is_a_masked_window_when_only_one_is_allowed() -> None:
    found = best_ladder([SHORT, MIDDLE, LONG], HALF_AND_HALF, 1)
    assert found is not None
    assert (found.names, found.expected.ms) == (("8m",), (4 + 16) / 2)


def test_best_ladder_leaves_out_a_window_when_no_utterance_runs_it() -> None:
    # With 16p too the cost is the same, and the memory is not.
    found = best_ladder([SHORT, MIDDLE, LONG], HALF_AND_HALF, 3)
    assert found is not None
    assert found.names == ("8m", "32p")


def test_best_ladder_is_none_when_nothing_serves_the_shortest_exactly() -> None:
    assert best_ladder([MIDDLE, LONG], HALF_AND_HALF, 3) is None
    assert best_ladder([], HALF_AND_HALF, 3) is None


def test_best_ladder_needs_no_mask_when_every_utterance_fills_a_window() -> None:
    found = best_ladder([MIDDLE, LONG], {16: 0.5, 32: 0.5}, 3)
    assert found is not None
    assert (found.names, found.expected.ms) == (("16p", "32p"), 6.0)


def test_best_ladder_is_of_one_context_when_a_mixed_one_would_cost_less() -> None:
    # One command builds a ladder, and its --context is that of every window. 8 frames cost 4 without context
    # and 2 with it, 32 frames 9 and 12 (7 windows of 8 would take 14): 6.5 and 7 on average, and 5.5 mixed.
    seen = [
        Offered("8m", Rung(8, 0, 0, None, True, 4.0), 10.0),
        Offered("32p", Rung(32, 0, 0, None, False, 9.0), 10.0),
        Offered("8m c2", Rung(8, 2, 2, None, True, 2.0), 20.0),
        Offered("32p c2", Rung(32, 2, 2, None, False, 12.0), 20.0),
    ]
    found = best_ladder(seen, HALF_AND_HALF, 2)
    assert found is not None
    assert (found.names, found.expected.ms) == (("8m", "32p"), 6.5)


def test_best_ladder_has_no_two_windows_of_one_width() -> None:
    twice = [SHORT, window("8p", 8, 3.0), LONG]
    found = best_ladder(twice, {4: 0.5, 8: 0.5}, 3)
    assert found is not None
    assert found.names == ("8m",)


def test_best_ladder_is_cheap_in_long_audio_when_times_are_alike() -> None:
    # 24 frames: 12 ms by the one window, or by the other thrice, which costs half a millisecond a frame, as the first
    # does: 0.4 % less a frame wins, 0.4 % more loses, though the whole is alike.
    whole = window("24m", 24, 12.0, masked=True)
    for cost, best in ((3.984, "8m"), (4.016, "24m")):
        found = best_ladder([whole, window("8m", 8, cost, masked=True)], {24: 1.0}, 1)
        assert found is not None
        assert (found.names, found.steady_ms) == ((best,), min(cost / 8, 0.5))
        assert found.expected.ms <= min(12.0, 3 * cost) * TIE


def test_best_ladder_takes_the_least_time_when_times_differ_by_more() -> None:
    # 20 frames: 12 ms by the one, 12.12 (1 % more) by the other thrice, which is cheaper a frame of long audio.
    offered = [window("20m", 20, 12.0, masked=True), window("8m", 8, 4.04, masked=True)]
    found = best_ladder(offered, {20: 1.0}, 1)
    assert found is not None
    assert (found.names, found.steady_ms) == (("20m",), 0.6)


def test_best_ladder_saves_memory_when_times_are_alike() -> None:
    least, less = window("8m", 8, 4.0, masked=True, memory_mb=1.0), window("8n", 8, 4.0, masked=True, memory_mb=0.5)
    found = best_ladder([least, less], {24: 1.0}, 1)
    assert found is not None
    assert (found.names, found.memory_mb) == (("8n",), 0.5)


def test_best_ladder_begins_sooner_when_all_else_is_alike() -> None:
    found = best_ladder([window("24m", 24, 12.0, masked=True), SHORT], {24: 1.0}, 1)
    assert found is not None
    assert (found.names, found.expected.first_audio_ms) == (("8m",), 4.0)


def test_ladder_of_names_its_windows_narrowest_first() -> None:
    assert ladder_of([LONG, SHORT], HALF_AND_HALF).names == ("8m", "32p")


def test_best_of_leaves_out_a_ladder_when_it_does_not_hold_every_length() -> None:
    trimmed = Offered("9t", Rung(9, 1, 1, 7, False, 1.0), 1.0)
    found = best_of([[trimmed], [MIDDLE, SHORT]], HALF_AND_HALF)
    assert found is not None
    assert found.names == ("8m", "16p")
    assert best_of([[trimmed]], HALF_AND_HALF) is None


@pytest.mark.parametrize("most", [1, 2, 3])
def test_best_ladder_is_as_good_as_any_when_all_are_tried(most: int) -> None:
    offered = [SHORT, MIDDLE, LONG, window("12p", 12, 4.5), window("24m", 24, 6.5, masked=True)]
    shares = {3: 0.2, 12: 0.3, 20: 0.2, 41: 0.3}
    found = best_ladder(offered, shares, most)
    assert found is not None
    assert 1 <= len(found.names) <= most
    for other in offered:
        if other.rung.masked and most > 1:
            for third in offered:
                if third.rung.width != other.rung.width:
                    assert found.expected.ms <= TIE * ladder_of([other, third], shares).expected.ms
