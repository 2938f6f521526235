"""A speaker encoder that is open: what its engines are made of and compared with, made when somebody needs it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.cosyvoice2.speaker_file import open_speaker
from converters.remembered import Remembered
from converters.stages import Array, Checkpoint, OpenSession, Session
from models.cosyvoice2.speaker import Speaker, speaker_of
from models.cosyvoice2.speaker_graph import FBANK, embedded, speaker_graph
from models.draws import uniform

FloatArray = NDArray[np.float32]

VOICES = (0, 1, 2)
"""Seeds of the speech that engines are judged on."""

LEVEL = 3.0
"""Root mean square of features, logarithms less their mean over time: 2 to 4 in speech."""

_BANDS, _FRAMES = 9, 7
"""Neighbouring bands and frames over which levels are alike, as in speech."""

_PEAKS = 4
"""Bands that a voice is loud in, and each comes and goes on its own."""

KEPT_RUNS = len(VOICES)


class SpeakerOpening:
    """An open checkpoint."""

    def __init__(self, checkpoint: Checkpoint, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        opened = open_speaker(checkpoint)
        self.config, self.weights, self.published = opened.config, opened.weights, opened.published
        self._speakers: dict[int, Speaker] = {}
        self._models: dict[int, ir.Model] = {}
        self._sessions: dict[int, Session] = {}
        self._owed: dict[tuple[int, int], FloatArray] = {}

    def speaker(self, frames: int) -> Speaker:
        """The encoder for so many frames as a module."""
        if frames not in self._speakers:
            self._speakers[frames] = speaker_of(self.weights, self.config, frames)
        return self._speakers[frames]

    def model(self, frames: int) -> ir.Model:
        """The same as a graph, before any pass."""
        if frames not in self._models:
            self._models[frames] = speaker_graph(self.speaker(frames), self.config, frames)
        return self._models[frames]

    def session(self, frames: int) -> Session:
        """The same, opened; it runs nothing twice that gates share."""
        if frames not in self._sessions:
            self._sessions[frames] = Remembered(self.open_session(self.model(frames)), KEPT_RUNS)
        return self._sessions[frames]

    def feed(self, frames: int, voice: int) -> dict[str, Array]:
        """The inputs of an engine: drawn speech of so many frames by a voice."""
        return {FBANK: drawn_fbank(self.config.features, frames, voice)}

    def of_module(self, frames: int, voice: int) -> FloatArray:
        """The embedding [1, E] of drawn speech by the module."""
        return embedded(self.speaker(frames), drawn_fbank(self.config.features, frames, voice))

    def owed(self, frames: int, voice: int) -> FloatArray:
        """The same by the original: the published ONNX where there is one, else the module.

        Raises:
            Refusal: the ONNX gives something else than one embedding.
        """
        if (frames, voice) not in self._owed:
            self._owed[frames, voice] = self._by_original(frames, voice)
        return self._owed[frames, voice]

    def _by_original(self, frames: int, voice: int) -> FloatArray:
        if self._published is None or self.published is None:
            return self.of_module(frames, voice)
        fbank = drawn_fbank(self.config.features, frames, voice)
        (given,) = self.published.graph.inputs
        (made,) = self._published({str(given.name): np.ascontiguousarray(fbank[:, 0].transpose(0, 2, 1))}).values()
        if made.shape != (1, self.config.embedding):
            raise Refusal(
                f"{self.file.path}: gives {list(made.shape)} for {frames} frames, and an embedding of "
                f"{self.config.embedding} is expected."
            )
        return np.asarray(made, np.float32)

    @cached_property
    def _published(self) -> Session | None:
        return None if self.published is None else self.open_session(self.published)


def drawn_fbank(features: int, frames: int, voice: int) -> FloatArray:
    """Features [1, 1, features, frames] like speech's: smooth both ways, loud in bands of the voice's own, no mean."""
    drawn = uniform("fbank", (features + _BANDS - 1, frames + _FRAMES - 1), voice, -1.0, 1.0).astype(np.float64)
    smooth = np.lib.stride_tricks.sliding_window_view(drawn, (_BANDS, _FRAMES)).mean(axis=(2, 3))
    levels = smooth / smooth.std()
    bands, times = np.arange(features), np.arange(frames)
    places = uniform("peaks", (_PEAKS, 3), voice, 0.0, 1.0).astype(np.float64)
    for place, rate, phase in places:
        shape = np.exp(-(((bands - place * features) / (features / 16)) ** 2))
        levels += 2 * shape[:, None] * np.sin(2 * np.pi * (times / (10 + 30 * rate) + phase))
    levels -= levels.mean(axis=1, keepdims=True)
    return np.asarray(LEVEL * levels / levels.std(), np.float32)[None, None]
