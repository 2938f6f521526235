from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.verdicts import Measurement, at_least, failure
from farm.engine_entries import Standing, entry_of
from tests.contracts.samples import MANIFEST

HERE = Standing("amy", "window-109", "rk3588/amy/piper-decoder-w109.rknn", language="en-GB", job="compile-1", node="n1")


def test_entry_has_the_cost_for_each_frame_and_for_each_second_of_audio() -> None:
    cost = entry_of(MANIFEST, HERE).cost
    assert cost is not None
    # 109 frames less 32 of context on each side, 256 samples each at 22050 Hz, in 26 ms.
    assert (cost.emitted, cost.unit, cost.cpu_layers) == (45, "frame", 1)
    assert cost.unit_ms == pytest.approx(26.0 / 45)
    assert cost.real_time_factor == pytest.approx(0.026 / (45 * 256 / 22050))


def test_entry_has_no_cost_when_the_layers_are_not_known() -> None:
    assert entry_of(replace(MANIFEST, layers=None), HERE).cost is None


def test_entry_keeps_what_did_not_pass_and_counts_the_rest() -> None:
    verdicts = (at_least("simulator", 45.5, 40.0, "dB"), at_least("fp32.whole", 99.0, 95.0, "dB"), failure("x", "No."))
    entry = entry_of(replace(MANIFEST, verdicts=verdicts), HERE)
    assert (entry.verdicts.passed, entry.verdicts.failed, entry.verdicts.unproven) == (2, 1, 0)
    assert [verdict.gate for verdict in entry.notable] == ["x"]
    assert entry.simulator_db == 45.5


def test_entry_has_what_its_build_took_and_no_figure_that_is_none() -> None:
    told = tuple(
        Measurement(name=name, measured=measured, unit=unit, reason="of the machine")
        for name, measured, unit in (("build.wall", 4.5, "s"), ("build.peak_memory", 787.0, "MB"))
    )
    measured = entry_of(replace(MANIFEST, measurements=told, board=None), HERE).measured
    assert (measured.node, measured.build_s, measured.build_cpu_s, measured.build_peak_bytes) == (
        "n1",
        4.5,
        None,
        787_000_000,
    )
    assert measured.board_ms is None
