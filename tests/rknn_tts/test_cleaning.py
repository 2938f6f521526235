from __future__ import annotations

from pathlib import Path

import pytest

from rknn_tts.cleaning import remove_steps_and_logs
from rknn_tts.steps import open_steps


def test_clean_removes_steps_checkpoints_and_logs_and_keeps_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("RKNN_TTS_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    kept = ["engines/rk3588/a.rknn", "build-logs/notes.txt", "cache/something of the user's", "build-logs/old.log/x"]
    gone = [
        "build-logs/a.log",
        "build-logs/a.layers.json",
        "build-logs/a.failed.json",
        "cache/checkpoints/voice-1/voice.onnx",
    ]
    for name in (*kept, *gone):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    step = open_steps(False, pytest.fail).folder("export", {}, lambda folder: None)
    sentences = remove_steps_and_logs()
    assert not step.exists()
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert any(sentence.startswith("1 finished steps removed") for sentence in sentences)
    assert any(sentence.startswith("3 build logs removed") for sentence in sentences)


def test_clean_has_nothing_to_remove_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert len(remove_steps_and_logs()) == 1
    assert list(tmp_path.iterdir()) == []
