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
from tests.converters.voices import whole_voice
from tests.docs.pages import ROOT, files_of
from tests.docs.workplace import CHOIR, CHOIR_RECIPE, Ran, Workplace

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
    config = voice.with_name(f"{voice.name}.json")
    spoken, rate = spoken_quietly(workplace, "engines/rk3588/piper-decoder-w109.json", config)
    expected = said_by_the_voice(voice, json.loads(config.read_text(encoding="utf-8")))
    assert rate == 22050
    assert spoken.shape == expected.shape
    assert spoken.size > rate
    assert db(expected, spoken) > LEAST_DB


def test_speak_speaks_as_who_is_asked_for_when_a_voice_has_several(workplace: Workplace, choir: Ran) -> None:
    config = workplace.folder / f"{CHOIR}.json"
    ids = ids_of(json.loads(config.read_text(encoding="utf-8")))
    said = {}
    for speaker in (0, 1):
        manifest = f"engines/rk3588/{CHOIR.stem}/piper-decoder-w109.json"
        spoken, rate = spoken_quietly(workplace, manifest, config, speaker)
        said[speaker] = np.asarray(whole_voice(CHOIR_RECIPE, ids, (0.0, 1.0, 0.0), speaker=speaker)["output"]).ravel()
        assert rate == CHOIR_RECIPE.sample_rate
        assert db(said[speaker].astype(np.float64), spoken) > LEAST_DB
    assert said[0].shape != said[1].shape


def spoken_quietly(
    workplace: Workplace, manifest: str, config: Path, speaker: int = 0
) -> tuple[NDArray[np.float64], int]:
    """What the program writes without noise, and its sample rate."""
    assert PROGRAM.count(DRAWN) == 1
    (workplace.folder / "quiet.py").write_text(PROGRAM.replace(DRAWN, "0 * " + DRAWN), encoding="utf-8")
    done = workplace.run(f'.venv/bin/python quiet.py {manifest} "{config}" quiet.wav "{PHONEMES}" {speaker}')
    assert done.code == 0, done.output
    return read_wav(workplace.folder / "quiet.wav")


def db(reference: NDArray[np.floating[Any]], measured: NDArray[np.floating[Any]]) -> float:
    """Signal-to-noise ratio."""
    return float(10 * np.log10(np.sum(reference**2) / np.sum((measured - reference) ** 2)))


def ids_of(config: dict[str, Any]) -> list[int]:
    """The sentence as Piper's ids: begin, then a pad behind every symbol, end."""
    table = config["phoneme_id_map"]
    return [*table["^"], *table["_"], *(i for s in PHONEMES for i in [*table.get(s, ()), *table["_"]]), *table["$"]]


def said_by_the_voice(voice: Path, config: dict[str, Any]) -> NDArray[np.float64]:
    """The samples of the voice as its authors exported it, its noise scales at zero."""
    ids = ids_of(config)
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
