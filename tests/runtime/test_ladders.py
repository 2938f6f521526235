from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.ladders import cheapest_rung, full_or_short, ladder_of, narrowest_rung
from rknn_tts_runtime.manifest import EngineManifest

from tests.runtime.fake_backends import written_manifest


def windowed(
    tmp_path: Path, frames: int, context: int, ms: float | None, name: str = "", board: object = None
) -> EngineManifest:
    window = {
        "frames": frames,
        "emitted": frames - 2 * context,
        "left": context,
        "right": context,
        "hop": 256,
        "sample_rate": 22050,
    }
    keys: dict[str, Any] = {"window": window, "board": board}
    if ms is not None:
        keys["layers"] = {"modelled_ms": ms}
    return written_manifest(tmp_path, name or f"w{frames}", **keys)


def sized(tmp_path: Path, length: int, name: str = "", tensor: str = "input") -> EngineManifest:
    inputs = [{"name": tensor, "shape": [1, length], "dtype": "int64"}]
    return written_manifest(tmp_path, name or f"n{length}", inputs=inputs)


@pytest.mark.parametrize(
    ("frames", "width"),
    [
        (40, 48),  # one window each: 10 ms against 25
        (48, 48),
        (64, 48),  # 16 of 48 behind the first window: 2 windows, 20 ms against 25
        (80, 128),  # windows start at 0, 16 and 32, and the last of them ends at 80: 3 windows, 30 ms against 25
        (112, 128),  # 5 windows, 50 ms, against 25
        (128, 128),
        (224, 128),  # 12 windows, 120 ms, against 2, 50 ms
    ],
)
def test_the_cheapest_rung_has_the_least_time_of_all_windows(tmp_path: Path, frames: int, width: int) -> None:
    rungs = [windowed(tmp_path, 48, 16, 10.0), windowed(tmp_path, 128, 16, 25.0)]
    assert cheapest_rung(frames, rungs).engine.name == f"w{width}.rknn"
    assert cheapest_rung(frames, rungs[::-1]).engine.name == f"w{width}.rknn"


def test_of_rungs_that_cost_the_same_the_one_that_pads_less_is_taken(tmp_path: Path) -> None:
    rungs = [windowed(tmp_path, 100, 10, 20.0), windowed(tmp_path, 64, 10, 20.0)]
    assert cheapest_rung(50, rungs).engine.name == "w64.rknn"


def test_of_rungs_that_cost_the_same_and_pad_nothing_the_narrower_is_taken(tmp_path: Path) -> None:
    # 108 frames: of 64 and 2 x 10 context windows start at 0 and 44 (2 x 10 ms); of 108 one (20 ms).
    rungs = [windowed(tmp_path, 108, 10, 20.0), windowed(tmp_path, 64, 10, 10.0)]
    assert cheapest_rung(108, rungs).engine.name == "w64.rknn"


def test_without_the_time_of_a_rung_the_frames_that_are_run_count(tmp_path: Path) -> None:
    # 100 frames: 2 x 64 = 128 against 1 x 100; by its time the narrow one would be the cheaper.
    rungs = [windowed(tmp_path, 64, 10, 1.0), windowed(tmp_path, 100, 10, None)]
    assert cheapest_rung(100, rungs).engine.name == "w100.rknn"


def test_what_a_board_measured_counts_where_it_measured_all_rungs(tmp_path: Path) -> None:
    # 100 frames: 2 windows of 64, 1 of 100. Modelled 2 x 10 ms against 30; on a board 2 x 10 ms against 15.
    def rungs(narrow_board: object, wide_board: object) -> list[EngineManifest]:
        return [
            windowed(tmp_path, 64, 10, 10.0, board=narrow_board),
            windowed(tmp_path, 100, 10, 30.0, board=wide_board),
        ]

    assert cheapest_rung(100, rungs({"ms": 10.0}, {"ms": 15.0})).engine.name == "w100.rknn"
    for one in (None, {"ms": None}):
        assert cheapest_rung(100, rungs(one, {"ms": 15.0})).engine.name == "w64.rknn"


def test_a_ladder_without_rungs_is_refused() -> None:
    with pytest.raises(BadInput, match="one engine at least"):
        cheapest_rung(10, [])


def test_a_rung_without_a_window_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"n128\.json: tells of no window"):
        cheapest_rung(10, [sized(tmp_path, 128)])


@pytest.mark.parametrize(("frames", "name"), [(127, "short"), (128, "full"), (129, "full"), (1, "short")])
def test_kokoros_engine_goes_by_whether_the_utterance_fills_the_window(tmp_path: Path, frames: int, name: str) -> None:
    full, short = (windowed(tmp_path, 128, 9, 300.0, role) for role in ("full", "short"))
    assert full_or_short(frames, full, short).engine.name == f"{name}.rknn"


def test_an_utterance_shorter_than_the_window_needs_the_short_engine(tmp_path: Path) -> None:
    full = windowed(tmp_path, 128, 9, 300.0, "full")
    assert full_or_short(128, full, None) is full
    with pytest.raises(BadInput, match=r"full\.rknn: takes utterances of 128 frames and more.* 127.*`short`"):
        full_or_short(127, full, None)


@pytest.mark.parametrize(("length", "expected"), [(1, 128), (128, 128), (129, 192), (192, 192), (193, None)])
def test_the_narrowest_rung_that_holds_it_is_taken_and_none_above_the_widest(length: int, expected: int | None) -> None:
    assert narrowest_rung(length, {192: 192, 128: 128}) == expected


def test_a_ladder_is_told_by_an_inputs_last_axis(tmp_path: Path) -> None:
    wide, narrow = sized(tmp_path, 192), sized(tmp_path, 128)
    assert list(ladder_of([wide, narrow], "input").items()) == [(128, narrow), (192, wide)]


def test_two_rungs_of_one_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"n128\.rknn and .*again\.rknn are both of length 128"):
        ladder_of([sized(tmp_path, 128), sized(tmp_path, 128, "again")], "input")


def test_an_engine_without_the_ladders_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"n128\.json: has no input 'x'"):
        ladder_of([sized(tmp_path, 128)], "x")
