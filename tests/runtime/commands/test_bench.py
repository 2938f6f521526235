"""`bench`: which of several runs counts, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.cli import main
from rknn_tts_runtime.commands.bench import median_report
from rknn_tts_runtime.speaking.streaming_report import StreamingReport

from tests.runtime.commands.voices import KnownVoice, given, write_plan


def report(total_ms: float) -> StreamingReport:
    return StreamingReport("piper", "onnx", {}, 1.0, total_ms, 1.0, 1.0, 1, 0.0, (), None, ())


@pytest.mark.parametrize(("times", "median"), [([3, 1, 2], 2), ([4, 1, 3, 2], 3), ([5], 5)])
def test_the_run_of_the_median_time_counts(times: list[float], median: float) -> None:
    assert median_report([report(time) for time in times]).total_ms == median
    assert median == np.sort(times)[len(times) // 2]


def test_bench_speaks_as_often_as_asked_and_tells_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = given(KnownVoice([0.0] * 800), monkeypatch)
    assert main(["bench", "--backend", "onnx", write_plan(tmp_path), "--repeats", "2", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["repeats"], told["family"], told["backend"]) == (
        "rknn-tts/bench/1", 2, "piper", "onnx",
    )  # fmt: skip
    assert (told["audio_ms"], told["chunks"]) == (100.0, 2)  # 800 samples at 8000 Hz
    assert told["rtf"] == pytest.approx(told["total_ms"] / 100)
    assert any("no NPU was used" in note for note in told["notes"])
    assert (len(voice.asked), voice.closed) == (2, 1)
    assert main(["bench", "--backend", "onnx", write_plan(tmp_path), "--ids", "1", "--repeats", "1"]) == 0
    assert "audio:               100 ms in 2 chunks" in capsys.readouterr().out


@pytest.mark.parametrize("repeats", ["0", "1001"])
def test_bench_refuses_to_run_never_or_without_end(
    repeats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--backend", "onnx", write_plan(tmp_path), "--repeats", repeats]) == 2
    assert f"--repeats {repeats}: expected from 1 to 1000" in capsys.readouterr().err
