"""The program of docs/kokoro.md over a small set of engines' twins: what it writes is what the original modules say."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray

from tests.docs.pages import ROOT, files_of
from tests.docs.test_speak_example import read_wav
from tests.kokoro_writer.checkpoint import Weights
from tests.kokoro_writer.speaking import write_voices
from tests.kokoro_writer.windowed import CONTEXT, LIKE_KOKORO, WIDTH, host, quiet_weights, twin
from tests.models.kokoro.reference_generator import reference_generator, spec_phase

PROGRAM = files_of(ROOT / "docs" / "kokoro.md")["speak_kokoro.py"]
DRAWN = "rng.standard_normal("

LEAST_DB = 60.0
"""16-bit samples of a voice that peaks near 0.5 carry about 80 dB."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Speaking:
    """A folder with the program, a set of two engines' twins, and voices."""

    folder: Path
    weights: Weights

    def say(self, phonemes: str) -> str:
        """The program on `phonemes`, without noise; what it printed. It writes said.wav."""
        words = [
            sys.executable,
            "speak.py",
            "kokoro-generator.set.json",
            "voices_ja.npz",
            "said.wav",
            phonemes,
            "second",
        ]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Speaking:
    folder = tmp_path_factory.mktemp("speaking")
    assert PROGRAM.count(DRAWN) == 1
    (folder / "speak.py").write_text(PROGRAM.replace(DRAWN, "0 * " + DRAWN), encoding="utf-8")
    write_voices(folder)
    ir.save(host(), folder / "kokoro-host.onnx")
    for role in ("full", "short"):
        write_member(folder, role)
    members = {"schema": "rknn-tts/set/1", "members": ["full.json", "short.json"]}
    (folder / "kokoro-generator.set.json").write_text(json.dumps(members), encoding="utf-8")
    return Speaking(folder, quiet_weights())


def write_member(folder: Path, role: str) -> None:
    """The twin of an engine, and of its manifest what the program reads."""
    model = twin(role)
    ir.save(model, folder / f"{role}.onnx")
    inputs = {str(value.name): [n for n in value.shape or () if isinstance(n, int)] for value in model.graph.inputs}
    window = {"frames": WIDTH, "left": CONTEXT, "right": CONTEXT, "hop": LIKE_KOKORO.istftnet.hop}
    manifest = {
        "role": role,
        "window": {**window, "sample_rate": 24000},
        "inputs": [{"name": name, "shape": shape} for name, shape in inputs.items()],
        "host": {"file": "kokoro-host.onnx"},
        "onnx": {"file": f"{role}.onnx"},
    }
    (folder / f"{role}.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(("phonemes", "role"), [("ai.", "short"), ("aeiokʨɯn", "full")])
def test_speak_writes_what_the_original_modules_say(speaking: Speaking, phonemes: str, role: str) -> None:
    printed = speaking.say(phonemes)
    spoken, rate = read_wav(speaking.folder / "said.wav")
    x, har, style = seam(speaking, phonemes)
    frames = x.shape[-1]
    assert (frames < WIDTH) == (role == "short")
    assert printed == f"said.wav: {frames * 300 / 24000:.2f} s, {frames} frames, engine {role}\n"
    wanted = samples_of(spectrogram(speaking.weights, x, har, style))
    assert (rate, spoken.shape) == (24000, wanted.shape)
    assert np.abs(wanted).max() < 1
    assert 10 * np.log10(np.sum(wanted**2) / np.sum((spoken - wanted) ** 2)) > LEAST_DB


def seam(speaking: Speaking, phonemes: str) -> tuple[Array, Array, Array]:
    """What the host half makes of the phonemes in the second voice, without noise.

    In onnxruntime, as the program runs it: where the source is silent its phase is any.
    """
    vocabulary = json.loads((speaking.folder / "vocab.json").read_text(encoding="utf-8"))["vocab"]
    ids = [vocabulary[sign] for sign in phonemes if sign != " "]
    with np.load(speaking.folder / "voices_ja.npz") as voices:
        style = voices["second"][len(ids) - 1]
    session = ort.InferenceSession(speaking.folder / "kokoro-host.onnx", providers=["CPUExecutionProvider"])
    feed = {
        "tokens": np.array([[0, *ids, 0]], np.int64),
        "voice_style": style,
        "speed": np.ones(1, np.float32),
        "noise_source": np.zeros((1, 2 * LIKE_KOKORO.max_dur * (len(ids) + 2) * 300, 9), np.float32),
    }
    x, har, half = session.run(["x", "har", "style"], feed)
    assert np.array_equal(half, style[:, : LIKE_KOKORO.style_dim])
    return x, har, half


def spectrogram(weights: Weights, x: Array, har: Array, style: Array) -> Array:
    """The original generator: at once where one window holds it, else by windows laid out by hand."""
    original = reference_generator(weights, LIKE_KOKORO)
    frames = x.shape[-1]

    def window(start: int, stop: int) -> Array:
        parts = x[..., start:stop], har[..., 60 * start : 60 * stop + 1], style
        made: Array = spec_phase(original, *(torch.from_numpy(np.ascontiguousarray(part)) for part in parts)).numpy()
        return made

    if frames <= WIDTH:
        return window(0, frames)
    whole = np.zeros((1, 22, 60 * frames + 1), np.float32)
    first, emitted = 0, WIDTH - CONTEXT
    while True:
        start = max(0, min(first - CONTEXT, frames - WIDTH))
        made = window(start, start + WIDTH)
        kept = made[..., 60 * (first - start) :]
        whole[..., 60 * first : 60 * first + kept.shape[-1]] = kept
        if start + WIDTH == frames:
            return whole
        first = start + emitted


def samples_of(raw: Array) -> NDArray[np.float64]:
    """Torch's own inverse transform of a raw spectrogram."""
    magnitude, phase = np.exp(raw[0, :11].astype(np.float64)), np.sin(raw[0, 11:].astype(np.float64))
    bins = torch.from_numpy(magnitude * np.exp(1j * phase))[None]
    window = torch.hann_window(20, dtype=torch.float64)
    return np.asarray(torch.istft(bins, 20, 5, 20, window)[0], np.float64)
