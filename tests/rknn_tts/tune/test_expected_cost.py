"""Means over utterances, computed by hand from the windows that they need."""

from __future__ import annotations

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.window_cover import Rung

from rknn_tts.tune.expected_cost import expected_cost

NARROW = Rung(width=10, left=2, right=2, trim=None, masked=True, cost=3.0)
"""Begins with 8 frames, goes on by 6 and ends with 8."""

WIDE = Rung(width=30, left=2, right=2, trim=28, masked=False, cost=6.0)
"""Emits 26, and one frame more at either end of an utterance: trim = 26 + 2."""


def test_expected_cost_is_that_of_its_windows_when_one_rung_decodes_all() -> None:
    # 4 frames: one padded window; 10: one; 16: two (8 + 8); 22: three (8 + 6 + 8).
    found = expected_cost({4: 0.25, 10: 0.25, 16: 0.25, 22: 0.25}, [NARROW])
    assert found.runs == pytest.approx([(1 + 1 + 2 + 3) / 4])
    assert found.ms == pytest.approx(3.0 * 7 / 4)
    assert found.first_audio_ms == 3.0


def test_expected_cost_counts_each_rung_when_utterances_take_different_ones() -> None:
    # 4 frames: the narrow one, padded, 3 ms. 54 frames: the wide one twice emits 27 + 27, 12 ms; the narrow one alone
    # would take 9 windows (8 + 7 x 6 = 50, and 8 more), 27 ms.
    found = expected_cost({4: 0.75, 54: 0.25}, [NARROW, WIDE])
    assert found.runs == pytest.approx([0.75, 0.5])
    assert found.ms == pytest.approx(0.75 * 3 + 0.25 * 12)
    assert found.first_audio_ms == pytest.approx(0.75 * 3 + 0.25 * 6)


def test_expected_cost_is_refused_when_no_window_holds_a_length() -> None:
    with pytest.raises(BadInput):
        expected_cost({4: 1.0}, [WIDE])
