"""`say`: what a voice gives stands in the file, and nothing that is no WAV is lost."""

from __future__ import annotations

import os
import wave
from pathlib import Path

import pytest
from rknn_tts_runtime.cli import main
from rknn_tts_runtime.speaking.speaker import Asked

from tests.runtime.commands.voices import KnownVoice, given, write_plan


def said(folder: Path, out: Path) -> int:
    return main(["say", "--backend", "onnx", "--plan", write_plan(folder), "--ids", "1,2", "--out", str(out)])


def test_what_the_voice_gives_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = given(KnownVoice([0.5, -1.0, 2.0, 0.0]), monkeypatch)
    assert said(tmp_path, tmp_path / "x.wav") == 0
    with wave.open(str(tmp_path / "x.wav"), "rb") as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (8000, 1, 2)
        levels = reader.readframes(9)
    # 0.5 x 32767 = 16383.5, which rounds to the even 16384; 2.0 is clipped.
    assert levels == b"".join(level.to_bytes(2, "little", signed=True) for level in (16384, -32767, 32767, 0))
    assert (voice.asked, voice.closed) == ([Asked(ids=(1, 2))], 1)
    out = capsys.readouterr().out
    assert f"wrote:   {tmp_path / 'x.wav'} (0.00 s at 8000 Hz)" in out
    assert "\nstages:  decoder 1 x\n" in out
    assert "note:    a stand-in." in out
    assert "no NPU was used" in out
    assert "note:    1 samples went beyond full scale" in out


@pytest.mark.parametrize("samples", [[0.0, float("nan")], [float("inf"), 0.0]])
def test_samples_that_are_no_numbers_are_not_written(
    samples: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = given(KnownVoice(samples), monkeypatch)
    assert said(tmp_path, tmp_path / "x.wav") == 1
    assert "not finite numbers" in capsys.readouterr().err
    assert (voice.closed, (tmp_path / "x.wav").exists()) == (1, False)


def test_an_older_wav_and_an_empty_file_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(KnownVoice([0.0, 0.0]), monkeypatch)
    for earlier in (b"RIFF and more", b""):
        (tmp_path / "x.wav").write_bytes(earlier)
        assert said(tmp_path, tmp_path / "x.wav") == 0
        assert (tmp_path / "x.wav").stat().st_size == 44 + 4  # header and two samples


def test_what_is_no_wav_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = given(KnownVoice([0.0, 0.0]), monkeypatch)
    (tmp_path / "letter.txt").write_text("Dear")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("letter.txt", "is no WAV file"), ("pipe", "a device or a pipe"), ("gone/x.wav", "no folder")):
        assert said(tmp_path, tmp_path / name) == 2
        assert why in capsys.readouterr().err
    assert (tmp_path / "letter.txt").read_text() == "Dear"
    assert (tmp_path / "pipe").is_fifo()
    assert voice.asked == []
