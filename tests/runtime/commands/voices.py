"""A voice for the commands that speak: it gives known samples, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.commands import bench, say
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from tests.runtime.engine_folders import HOST_FILE, STEM, write_engine


class KnownVoice:
    """Says `samples` in two pieces."""

    sample_rate = 8000
    notes = ("a stand-in.",)

    def __init__(self, samples: list[float]) -> None:
        self.samples = np.array(samples, np.float32)
        self.asked: list[Asked] = []
        self.closed = 0

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        self.asked.append(asked)
        with stopwatch.stage("decoder"):
            pass
        yield self.samples[:1]
        yield self.samples[1:]

    def close(self) -> None:
        self.closed += 1


def given(voice: KnownVoice, monkeypatch: pytest.MonkeyPatch) -> KnownVoice:
    """`voice`, which every plan now opens."""
    for command in (say, bench):
        monkeypatch.setattr(command, "open_speaker", lambda plan, backend: voice)
    return voice


def write_plan(folder: Path) -> str:
    """A plan of an engine, both in `folder`; its path."""
    write_engine(folder)
    decoder = {"impl": "rknn", "artifacts": {"main": f"{STEM}.rknn", "host": HOST_FILE}}
    (folder / "plan.json").write_text(json.dumps({"piper_tts.exec_plan": {"decoder": decoder}}))
    return str(folder / "plan.json")
