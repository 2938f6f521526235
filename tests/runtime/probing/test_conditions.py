from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

import pytest
from rknn_tts_runtime.probing.conditions import (
    SAMPLED_EVERY_S,
    ClockWatch,
    conditions_before,
    utc_now,
    warnings_of,
)
from rknn_tts_runtime.probing.result import Clock

from tests.runtime.probing.boards import write_board

MHZ = 1_000_000


def test_time_is_utc_to_a_second() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", utc_now())


def test_clock_is_read_while_runs_are_timed(tmp_path: Path) -> None:
    root = write_board(tmp_path, hz=300 * MHZ)
    watch = ClockWatch(root)
    with watch.watching():
        time.sleep(5 * SAMPLED_EVERY_S)
        write_board(root, hz=1000 * MHZ)
    write_board(root, hz=200 * MHZ)
    assert watch.clock == Clock(300 * MHZ, 1000 * MHZ)


def test_clock_is_read_even_of_the_shortest_run(tmp_path: Path) -> None:
    watch = ClockWatch(write_board(tmp_path, hz=600 * MHZ))
    with watch.watching():
        pass
    assert watch.clock == Clock(600 * MHZ, 600 * MHZ)


def test_machine_that_tells_nothing_has_no_clock(tmp_path: Path) -> None:
    watch = ClockWatch(tmp_path)
    with watch.watching():
        pass
    assert watch.clock is None
    found = conditions_before(tmp_path)
    assert (found.soc, found.board, found.governor, found.highest_hz) == (None, None, None, None)


@pytest.mark.parametrize(
    ("governor", "least", "most", "highest", "said"),
    [
        ("rknpu_ondemand", 1000, 1000, 1000, []),
        ("rknpu_ondemand", 1000, 1000, None, []),
        ("performance", 1000, 1000, 1000, ["governor is performance"]),
        ("rknpu_ondemand", 300, 300, 1000, ["ran at 300 MHz at most, and could at 1000"]),
        ("rknpu_ondemand", 300, 300, None, ["ran at 300 MHz at most, and could at 1000"]),
        ("rknpu_ondemand", 950, 950, 950, []),
        ("rknpu_ondemand", 300, 1000, 1000, ["not steady while runs were timed: 300 to 1000 MHz"]),
        ("powersave", 300, 300, 1000, ["governor is powersave", "ran at 300 MHz"]),
        (None, None, None, None, ["governor is not told", "clock while runs were timed is not told"]),
        ("rknpu_ondemand", None, None, 1000, ["clock while runs were timed is not told"]),
    ],
)
def test_conditions_that_are_not_the_references_are_told(
    tmp_path: Path, governor: str | None, least: int | None, most: int | None, highest: int | None, said: list[str]
) -> None:
    found = dataclasses.replace(
        conditions_before(tmp_path),
        governor=governor,
        clock=Clock(least * MHZ, most * MHZ) if least and most else None,
        highest_hz=highest * MHZ if highest else None,
    )
    warnings = warnings_of(found)
    assert len(warnings) == len(said)
    assert all(text in warning for text, warning in zip(said, warnings, strict=True))
