from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.contract import CodeStep, Contract, Source, Window
from cost.emission import CODE, FRAME, emission_of

CONTRACT = Contract(None, None, Source("x", "ab" * 32, "checkpoint"), (), ())


def test_window_emits_frames_of_audio_when_its_rate_is_known() -> None:
    window = Window(frames=109, emitted=45, left=32, right=32, hop=256, sample_rate=22050)
    found = emission_of(replace(CONTRACT, window=window))
    assert found is not None
    assert (found.unit, found.count) == (FRAME, 45)
    assert found.audio_s == pytest.approx(0.52245, abs=1e-5)  # 45 * 256 / 22050


def test_step_emits_codes_without_seconds_when_no_rate_is_stated() -> None:
    found = emission_of(replace(CONTRACT, step=CodeStep(16, 1920, None, None, None, 4, 12)))
    assert found is not None
    assert (found.unit, found.count, found.audio_s) == (CODE, 12, None)


def test_nothing_is_emitted_when_there_is_neither_window_nor_step() -> None:
    assert emission_of(CONTRACT) is None
    assert emission_of(None) is None
