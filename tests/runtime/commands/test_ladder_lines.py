"""Which windows speak utterances of some lengths, as `check` tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.commands.ladder_lines import ladder_lines
from rknn_tts_runtime.manifest import EngineManifest

from tests.runtime.fake_backends import written_manifest


def decoder(folder: Path, width: int, ms: float | None, **told: Any) -> EngineManifest:
    """Of a window with 32 frames of context on each side; 1 s has 86 frames."""
    sizes = {"frames": width, "emitted": width - 64, "left": 32, "right": 32, "hop": 256, "sample_rate": 22016}
    keys = {"window": sizes, "layers": None if ms is None else {"modelled_ms": ms}, **told}
    return written_manifest(folder, f"w{width}", **keys)


def trimmed(folder: Path, width: int, ms: float) -> EngineManifest:
    frames = width - 60
    inputs = [{"name": "place", "shape": [1, 3, 1, 1], "dtype": "float32"}]
    outputs = [{"name": "audio", "shape": [1, frames * 256], "dtype": "float32"}]
    return decoder(folder, width, ms, inputs=inputs, outputs=outputs, trim={"input": "place", "frames": frames})


MASKED = [{"name": "mask_decoder", "hits": 9}]


def test_ladder_lines_tell_windows_and_their_time_when_all_are_modelled(tmp_path: Path) -> None:
    ladder = [decoder(tmp_path, 128, 28.0, passes=MASKED), trimmed(tmp_path, 256, 40.0), trimmed(tmp_path, 448, 67.0)]
    # A window of 256 emits 194 frames at an edge, one of 448 386, and 384 between; one of 128 96 at its edges.
    assert ladder_lines(ladder) == [
        "0.5 s (43 frames): w128, 28.0 ms (modelled)",
        "1.0 s (86 frames): w128, 28.0 ms (modelled)",
        "2.0 s (172 frames): 2 x w128, 56.0 ms (modelled)",
        "5.0 s (430 frames): w128, 2 x w256, 108.0 ms (modelled)",
        "10.0 s (860 frames): w128, 2 x w448, 162.0 ms (modelled)",
    ]


def test_ladder_lines_tell_no_time_when_none_is_known(tmp_path: Path) -> None:
    assert ladder_lines([decoder(tmp_path, 128, None), decoder(tmp_path, 512, 50.0)])[1] == "1.0 s (86 frames): w128"


def test_ladder_lines_tell_which_utterances_are_too_short_when_all_are_trimmed(tmp_path: Path) -> None:
    lines = ladder_lines([trimmed(tmp_path, 256, 40.0)])
    assert lines[2] == "2.0 s (172 frames): too short for every window: add an engine with a masked one"
    assert lines[3] == "5.0 s (430 frames): 3 x w256, 120.0 ms (modelled)"


def test_ladder_lines_leave_out_lengths_when_they_are_beyond_all_sense(tmp_path: Path) -> None:
    sizes = {"frames": 3, "emitted": 1, "left": 1, "right": 1, "hop": 1, "sample_rate": 96000}
    assert len(ladder_lines([decoder(tmp_path, 128, None, window=sizes)])) == 2


def test_ladder_lines_assume_a_rate_when_none_is_stated(tmp_path: Path) -> None:
    sizes = {"frames": 128, "emitted": 64, "left": 32, "right": 32, "hop": 441, "sample_rate": None}
    assert ladder_lines([decoder(tmp_path, 128, None, window=sizes)])[0].startswith("0.5 s (25 frames)")


@pytest.mark.parametrize("board", [{"ms": 30.5}])
def test_ladder_lines_say_so_when_a_board_measured_all(tmp_path: Path, board: object) -> None:
    assert ladder_lines([decoder(tmp_path, 128, 28.0, board=board)])[0].endswith("w128, 30.5 ms (measured on a board)")
