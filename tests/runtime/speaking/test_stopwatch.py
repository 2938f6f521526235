"""Stages by name, their runs and times added up."""

from __future__ import annotations

import pytest
from rknn_tts_runtime.speaking.stopwatch import StageTime, Stopwatch


def test_stage_adds_up_runs_and_seconds_in_the_order_of_first_runs() -> None:
    ticks = iter([0.0, 1.0, 10.0, 12.0, 20.0, 20.5])
    stopwatch = Stopwatch(lambda: next(ticks))
    for name in ("host half", "decoder", "host half"):
        with stopwatch.stage(name):
            pass
    assert list(stopwatch.stages.items()) == [("host half", StageTime(2, 1.5)), ("decoder", StageTime(1, 2.0))]


def test_stage_counts_a_run_that_raises() -> None:
    ticks = iter([0.0, 3.0])
    stopwatch = Stopwatch(lambda: next(ticks))
    with pytest.raises(KeyError), stopwatch.stage("decoder"):
        raise KeyError
    assert stopwatch.stages == {"decoder": StageTime(1, 3.0)}
