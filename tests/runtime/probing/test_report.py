from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.report import NO_BOARD, check_result_place, report_lines, write_result
from rknn_tts_runtime.probing.result import ProbeResult, result_text, signed_off
from rknn_tts_runtime.probing.run import run_kit

from tests.runtime.probing.boards import BoardBackend, write_board
from tests.runtime.probing.kits import write_kit


@pytest.fixture
def result(tmp_path: Path) -> ProbeResult:
    write_kit(tmp_path / "kit")
    backend = BoardBackend(lambda feed: {"y": np.asarray(feed["x"] * 2.1, np.float32)}, refusals={"part": 1})
    root = write_board(tmp_path / "board", hz=300_000_000, governor="powersave")
    found = run_kit(open_kit(tmp_path / "kit"), backend, lambda line: None, repeats=1, root=root)
    timed = dataclasses.replace(found.cases[0], ms=20.714, least_ms=19.5)
    found = dataclasses.replace(found, cases=(timed, *found.cases[1:]))
    return signed_off(found, "Ada", "2026-11-30T12:00:00+00:00")


def test_table_and_facts_tell_all_that_was_found(result: ProbeResult) -> None:
    assert report_lines(result) == [
        "case   status  SNR, dB  bound  max|d|     ms  least  cores",
        "net    FAILED     26.0   40.0     0.4  20.71  19.50  0_1_2",
        "field  FAILED",
        "FAILED net: output 'y': 26.0 dB, at least 40.0 are asked",
        "FAILED field: it could not be loaded: rknn_init failed with code -13",
        "engine: net.rknn, for rk3588, toolkit 2.3.2",
        "backend: librknnrt, api 2.3.2, driver 0.9.8",
        "board: Orange Pi 5 Plus, rk3588, 6.1.43-rockchip",
        "NPU clock: powersave, 300 MHz while cases ran",
        "loaded: 4.0 MiB, as the driver tells",
        "signed off: by Ada, 2026-11-30T12:00:00+00:00",
        "WARNING: The NPU's governor is powersave, and the reference's rknpu_ondemand.",
        "WARNING: The NPU ran at 300 MHz at most, and could at 1000: times are of that clock.",
        "0 of 2 cases passed.",
    ]


def test_result_of_twins_says_that_no_board_was_probed(result: ProbeResult) -> None:
    assert f"note: {NO_BOARD}" in report_lines(dataclasses.replace(result, backend="onnx"))


def test_result_is_written_whole(result: ProbeResult, tmp_path: Path) -> None:
    place = tmp_path / "r.json"
    write_result(place, result)
    check_result_place(place)
    assert place.read_text(encoding="utf-8") == result_text(result)


def test_name_that_is_not_unicode_is_written_as_json_has_it(result: ProbeResult, tmp_path: Path) -> None:
    broken = dataclasses.replace(result, warnings=("x\udcff",))
    write_result(tmp_path / "r.json", broken)
    assert b'"x\\udcff"' in (tmp_path / "r.json").read_bytes()


def test_failed_write_leaves_nothing_and_names_the_place(result: ProbeResult, tmp_path: Path) -> None:
    place = tmp_path / "r.json"
    place.mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RunFault, match=r"r\.json: cannot be written \(Is a directory\); --out names another place"):
        write_result(place, result)
    assert sorted(tmp_path.iterdir()) == before


def test_place_that_cannot_be_written_or_holds_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r.json"
    check_result_place(place)
    for text in ("", "{}", '{"schema": "rknn-tts/engine/1"}'):
        place.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match="is no result of a probe, and would be replaced"):
            check_result_place(place)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(BadInput, match="its folder cannot be written"):
        check_result_place(tmp_path / "new.json")
    with pytest.raises(BadInput, match="is a folder"):
        check_result_place(tmp_path)
    with pytest.raises(BadInput, match="there is no folder"):
        check_result_place(tmp_path / "gone" / "r.json")
