"""WAV files: the levels by hand, clipping counted, whole or not at all."""

from __future__ import annotations

import os
import wave
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime import write_wav


def levels_of(path: Path) -> list[int]:
    with wave.open(str(path), "rb") as reader:
        assert (reader.getnchannels(), reader.getsampwidth()) == (1, 2)
        data = reader.readframes(reader.getnframes())
    return [int.from_bytes(data[at : at + 2], "little", signed=True) for at in range(0, len(data), 2)]


def test_write_wav_writes_rounded_levels_when_samples_are_in_range(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    # 0.25 x 32767 = 8191.75.
    assert write_wav(path, np.array([0, 1, -1, 0.25, -0.25], np.float32), 24000) == 0
    assert levels_of(path) == [0, 32767, -32767, 8192, -8192]
    with wave.open(str(path), "rb") as reader:
        assert reader.getframerate() == 24000


def test_write_wav_counts_and_clips_samples_when_they_are_beyond_full_scale(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    assert write_wav(path, np.array([1.5, -2, 1, 0.5], np.float32), 8000) == 2
    assert levels_of(path) == [32767, -32767, 32767, 16384]


def test_write_wav_writes_an_empty_file_when_there_are_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    assert write_wav(str(path), np.zeros(0, np.float32), 8000) == 0
    assert levels_of(path) == []


@pytest.mark.parametrize(
    ("samples", "rate", "says"),
    [
        ([[0.0, 0.0]], 8000, "samples of shape \\[1, 2\\] are not one channel"),
        ([0.0, np.nan, np.inf], 8000, "2 of 3 samples are not finite"),
        ([0.0], 0, "rate of 0 is not positive"),
    ],
)
def test_write_wav_raises_and_keeps_the_earlier_file_when_asked_what_it_cannot(
    tmp_path: Path, samples: list[float], rate: int, says: str
) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"earlier")
    with pytest.raises(ValueError, match=says):
        write_wav(path, np.array(samples, np.float32), rate)
    assert path.read_bytes() == b"earlier"


def test_write_wav_leaves_nothing_behind_when_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"earlier")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_wav(path, np.zeros(4, np.float32), 8000)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.wav"]
    assert path.read_bytes() == b"earlier"


def test_write_wav_gives_the_file_the_users_permissions(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.zeros(4, np.float32), 8000)
    (tmp_path / "b").touch()
    assert (tmp_path / "a.wav").stat().st_mode == (tmp_path / "b").stat().st_mode
