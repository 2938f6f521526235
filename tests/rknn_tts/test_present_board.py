from __future__ import annotations

import dataclasses

import pytest

from contracts.board import Board, BoardConditions, BoardOutput
from rknn_tts.blocks import plain_text
from rknn_tts.present import MODELLED, layers_pairs, outcome_blocks
from rknn_tts.present_board import board_pairs, npu_text, output_text
from tests.contracts.samples import BOARD
from tests.rknn_tts.samples import MANIFEST, OUTCOME, REPORT

NOTHING = BoardConditions(
    soc=None,
    model=None,
    kernel=None,
    governor=None,
    least_hz=None,
    most_hz=None,
    core_mask=None,
    api=None,
    driver=None,
)


def shown(board: Board | None) -> list[str]:
    outcome = dataclasses.replace(OUTCOME, manifest=dataclasses.replace(MANIFEST, board=board))
    return plain_text(outcome_blocks(dataclasses.replace(REPORT, outcome=outcome))).splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "time:          20.7 ms a run for 522 ms of audio (measured on a board; 26.1 modelled)",
        "probed:        2 cases, 1 FAILED; 2026-11-30T12:00:00+00:00, signed off by Ada",
        "board:         Orange Pi 5 Plus, rk3588, 6.1.43",
        "NPU:           1000 MHz, rknpu_ondemand, cores 0_1_2, librknnrt 2.3.2",
        "board time:    20.7 ms, the median of 5 runs, the least 20.1",
        "board output:  output: 48.2 dB of at least 40, max|d| 0.01",
        "board memory:  17.0 MB weights, 13.0 MB internal, as the driver told",
    ],
)
def test_summary_says_what_a_board_measured(line: str) -> None:
    assert line in shown(BOARD)


def test_summary_says_modelled_where_no_board_measured_a_time() -> None:
    assert f"time:        26.1 ms a run for 522 ms of audio ({MODELLED})" in shown(None)
    refused = dataclasses.replace(BOARD, ms=None, outputs=(), memory=None)
    assert MANIFEST.layers is not None
    assert layers_pairs(MANIFEST.layers, None, refused)[0] == ("time", f"26.1 ms a run ({MODELLED})")
    assert [name for name, _ in board_pairs(refused)] == ["probed", "board", "NPU"]


def test_board_that_tells_nothing_is_told_so() -> None:
    pairs = dict(board_pairs(dataclasses.replace(BOARD, conditions=NOTHING)))
    assert (pairs["board"], pairs["NPU"]) == ("not told", "not told")


def test_clock_that_was_not_steady_is_a_range() -> None:
    found = dataclasses.replace(NOTHING, least_hz=300_000_000, most_hz=1_000_000_000)
    assert npu_text(found) == "300 to 1000 MHz"


def test_output_that_could_not_be_compared_says_so() -> None:
    assert output_text(BoardOutput("y", None, 40.0, None)) == "y: could not be compared"
