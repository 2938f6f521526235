"""A small Kokoro as a board gets it: two engines' twins with their manifests, the host half, voices and a plan."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from models.kokoro.generator_graph import SPECTROGRAM
from tests.kokoro_writer.checkpoint import Weights
from tests.kokoro_writer.speaking import VOCABULARY, write_voices
from tests.kokoro_writer.windowed import CONTEXT, LIKE_KOKORO, WIDTH, host, quiet_weights, twin
from tests.models.kokoro.reference_generator import reference_generator, spec_phase

Array = NDArray[Any]

HOST, VOICES = "kokoro-host.onnx", "voices_ja.npz"
RATE, HOP = 60, 300
"""Columns and samples a frame."""


@dataclass(frozen=True)
class KokoroSet:
    """The folder, and what the originals make of the same weights."""

    folder: Path
    weights: Weights
    original: Any

    def plan(self, name: str = "plan.json", **changed: Any) -> Path:
        """A plan of both engines; `changed` replaces artifacts, or gives params."""
        artifacts = {"main": "full.rknn", "short": "short.rknn", "host": HOST}
        generator = {"impl": "rknn", "artifacts": artifacts, **changed}
        path = self.folder / name
        path.write_text(json.dumps({"kokoro_tts.exec_plan": {"generator": generator}}), encoding="utf-8")
        return path

    def seam(self, phonemes: str, seed: int, speed: float = 1.0, place: int = 0) -> tuple[Array, Array, Array]:
        """x, har and style of `phonemes`, by the host half, with all the noise that it could need."""
        ids = [VOCABULARY[sign] for sign in phonemes]
        with np.load(self.folder / VOICES) as voices:
            style = voices["second"][len(ids) - 1]
        noise = np.random.default_rng((seed, place)).standard_normal((1, 4000 * HOP, 9), np.float32)
        session = ort.InferenceSession(self.folder / HOST, providers=["CPUExecutionProvider"])
        feed = {"tokens": np.array([[0, *ids, 0]], np.int64), "voice_style": style, "noise_source": noise}
        x, har, half = session.run(["x", "har", "style"], {**feed, "speed": np.array([speed], np.float32)})
        return x, har, half

    def whole(self, x: Array, har: Array, style: Array) -> Array:
        """The original generator on all of it at once."""
        parts = (torch.from_numpy(np.ascontiguousarray(part)) for part in (x, har, style))
        made: Array = spec_phase(self.original, *parts).numpy()
        return made

    def by_windows(self, x: Array, har: Array, style: Array, overlap: int = 0) -> Array:
        """The original by windows laid out by hand, neighbours cross-faded over `overlap` frames by a raised cosine."""
        frames = x.shape[-1]
        found = np.zeros((1, 22, RATE * frames + 1), np.float32)
        first = 0
        while True:
            start = max(0, min(first - CONTEXT, frames - WIDTH))
            part = x[..., start : start + WIDTH], har[..., RATE * start : RATE * (start + WIDTH) + 1], style
            kept = self.whole(*part)[..., RATE * (first - start) :]
            fading = RATE * overlap if first else 0
            rising = 0.5 - 0.5 * np.cos(np.pi * np.arange(fading) / max(fading, 1))
            at = RATE * first
            found[..., at : at + fading] *= 1 - rising
            found[..., at : at + fading] += rising * kept[..., :fading]
            found[..., at + fading : at + kept.shape[-1]] = kept[..., fading:]
            if start + WIDTH == frames:
                return found
            # What lies behind the emitted frames is context, and overwritten by the next window.
            first = start + WIDTH - CONTEXT - overlap


def write_set(folder: Path) -> KokoroSet:
    """All of it in `folder`."""
    weights = quiet_weights()
    write_voices(folder)
    ir.save(host(), folder / HOST)
    for role in ("full", "short"):
        ir.save(twin(role), folder / f"{role}.onnx")
        (folder / f"{role}.rknn").write_bytes(b"RKNN")
        (folder / f"{role}.json").write_text(json.dumps(manifest(folder, role, twin(role))), encoding="utf-8")
    return KokoroSet(folder, weights, reference_generator(weights, LIKE_KOKORO))


def manifest(folder: Path, role: str, model: ir.Model) -> dict[str, Any]:
    """What a board reads of an engine's manifest."""

    def tensors(values: Any) -> list[dict[str, Any]]:
        return [{"name": value.name, "shape": [int(n) for n in value.shape], "dtype": "float32"} for value in values]

    def file(name: str) -> dict[str, Any]:
        data = (folder / name).read_bytes()
        return {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

    assert [value.name for value in model.graph.outputs] == [SPECTROGRAM]
    window = {"frames": WIDTH, "emitted": WIDTH - 2 * CONTEXT, "left": CONTEXT, "right": CONTEXT, "hop": HOP}
    return {
        "schema": "rknn-tts/engine/1",
        "family": "kokoro",
        "stage": "generator",
        "role": role,
        "target": "rk3588",
        "toolkit": {"name": "rknn-toolkit2", "version": "2.3.2"},
        "source": {"name": "model.pth", "sha256": "ab" * 32, "kind": "checkpoint"},
        "engine": file(f"{role}.rknn"),
        "onnx": file(f"{role}.onnx"),
        "host": file(HOST),
        "inputs": tensors(model.graph.inputs),
        "outputs": tensors(model.graph.outputs),
        "window": {**window, "sample_rate": 24000},
        "board": None,
    }
