"""The program of docs/piper.md against the voice itself: what it writes is what the whole voice says."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.docs.pages import ROOT, files_of
from tests.docs.workplace import Workplace

PROGRAM = files_of(ROOT / "docs" / "piper.md")["speak.py"]
DRAWN = "rng.standard_normal("
PHONEMES = "ə bˈɜːtʃ kənˈuː slˈɪd ɔn ðə smˈuːð plˈæŋks."
LEAST_DB = 60.0
"""16-bit samples of a voice that peaks near 0.5 carry about 80 dB."""


@pytest.fixture
def voice(workplace: Workplace) -> Path:
    """The default voice."""
    return next((workplace.cache / CHECKPOINTS_FOLDER).glob("*/*.onnx"))


def test_speak_writes_what_the_whole_voice_says_when_neither_has_noise(workplace: Workplace, voice: Path) -> None:
    assert PROGRAM.count(DRAWN) == 1
    (workplace.folder / "quiet.py").write_text(PROGRAM.replace(DRAWN, "0 * " + DRAWN), encoding="utf-8")
    manifest, config = "engines/rk3588/piper-decoder-w109.json", voice.with_name(f"{voice.name}.json")
    done = workplace.run(f'.venv/bin/python quiet.py {manifest} "{config}" quiet.wav "{PHONEMES}"')
    assert done.code == 0, done.output
    spoken, rate = read_wav(workplace.folder / "quiet.wav")
    expected = said_by_the_voice(voice, json.loads(config.read_text(encoding="utf-8")))
    assert rate == 22050
    assert spoken.shape == expected.shape
    assert spoken.size > rate
    noise = np.sum((spoken - expected) ** 2)
    assert 10 * np.log10(np.sum(expected**2) / noise) > LEAST_DB


def said_by_the_voice(voice: Path, config: dict[str, Any]) -> NDArray[np.float64]:
    """The samples of the voice as its authors exported it, its noise scales at zero."""
    table = config["phoneme_id_map"]
    ids = table["^"] + table["_"] + [i for symbol in PHONEMES for i in table[symbol] + table["_"]] + table["$"]
    feed = {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array([0.0, config["inference"]["length_scale"], 0.0], np.float32),
    }
    session = ort.InferenceSession(voice, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0], np.float64).reshape(-1)


def read_wav(path: Path) -> tuple[NDArray[np.float64], int]:
    """Samples of a mono 16-bit file as -1..1, and their rate."""
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples.astype(np.float64) / 32767, file.getframerate()
