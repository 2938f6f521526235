from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.ladders import full_or_short, ladder_of, narrowest_rung, rung_of, rungs_of
from rknn_tts_runtime.manifest import EngineManifest
from rknn_tts_runtime.window_cover import Rung

from tests.runtime.fake_backends import written_manifest


def windowed(
    tmp_path: Path, frames: int, context: int, ms: float | None, name: str = "", board: object = None, **told: Any
) -> EngineManifest:
    window = {
        "frames": frames,
        "emitted": frames - 2 * context,
        "left": context,
        "right": context,
        "hop": 256,
        "sample_rate": 22050,
    }
    keys: dict[str, Any] = {"window": window, "board": board, **told}
    if ms is not None:
        keys["layers"] = {"modelled_ms": ms}
    return written_manifest(tmp_path, name or f"w{frames}", **keys)


def sized(tmp_path: Path, length: int, name: str = "", tensor: str = "input") -> EngineManifest:
    inputs = [{"name": tensor, "shape": [1, length], "dtype": "int64"}]
    return written_manifest(tmp_path, name or f"n{length}", inputs=inputs)


def test_a_rung_is_what_the_manifest_tells_of_its_window(tmp_path: Path) -> None:
    assert rung_of(windowed(tmp_path, 48, 16, 10.0)) == Rung(48, 16, 16, None, False, 10.0)
    masked = windowed(tmp_path, 48, 16, 10.0, passes=[{"name": "fold"}, {"name": "mask_decoder", "hits": 9}])
    assert rung_of(masked) == Rung(48, 16, 16, None, True, 10.0)
    unmasked = windowed(tmp_path, 48, 16, 10.0, passes=[{"name": "mask_decoder", "hits": 0}])
    assert rung_of(unmasked) == Rung(48, 16, 16, None, False, 10.0)
    place = {"name": "place", "shape": [1, 3, 1, 1], "dtype": "float32"}
    told: dict[str, Any] = {"inputs": [place], "outputs": [{"name": "audio", "shape": [1, 20 * 256]}]}
    trimmed = windowed(tmp_path, 48, 16, 10.0, trim={"input": "place", "frames": 20}, **told)
    assert rung_of(trimmed) == Rung(48, 16, 16, 20, False, 10.0)
    both = [{"name": "mask_decoder", "hits": 9}, {"name": "trim_decoder", "hits": 2}]
    trimmed = windowed(tmp_path, 48, 16, 10.0, passes=both, trim={"input": "place", "frames": 20}, **told)
    assert rung_of(trimmed) == Rung(48, 16, 16, 20, False, 10.0)  # its mask does not make it take padding


def costs(rungs: list[EngineManifest]) -> list[float]:
    return [rung.cost for rung in rungs_of(rungs)]


def test_a_ladder_costs_its_modelled_times_when_all_have_one(tmp_path: Path) -> None:
    assert costs([windowed(tmp_path, 64, 10, 1.0), windowed(tmp_path, 100, 10, 3.0)]) == [1.0, 3.0]


@pytest.mark.parametrize("ms", [None, 0.0])
def test_a_ladder_costs_its_frames_when_the_time_of_a_rung_is_unknown(tmp_path: Path, ms: float | None) -> None:
    assert costs([windowed(tmp_path, 64, 10, 1.0), windowed(tmp_path, 100, 10, ms)]) == [64.0, 100.0]
    assert rung_of(windowed(tmp_path, 100, 10, ms)).cost == 100.0


def test_what_a_board_measured_counts_where_it_measured_all_rungs(tmp_path: Path) -> None:
    def rungs(narrow_board: object, wide_board: object) -> list[EngineManifest]:
        return [
            windowed(tmp_path, 64, 10, 10.0, board=narrow_board),
            windowed(tmp_path, 100, 10, 30.0, board=wide_board),
        ]

    assert costs(rungs({"ms": 11.0}, {"ms": 15.0})) == [11.0, 15.0]
    for one in (None, {"ms": None}):
        assert costs(rungs(one, {"ms": 15.0})) == [10.0, 30.0]


def test_a_ladder_without_rungs_is_refused() -> None:
    with pytest.raises(BadInput, match="one engine at least"):
        rungs_of([])


def test_a_rung_without_a_window_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"n128\.json: tells of no window"):
        rungs_of([sized(tmp_path, 128)])


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
