"""A vocoder's checkpoint that is open: what its engines are made of and compared with, made when somebody needs it."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from contracts.quantisation import W8A8
from converters.cosyvoice2.hift_drawn import LOUD, QUIET, USUAL, FloatArray, drawn_mel, drawn_noise, drawn_pitch
from converters.cosyvoice2.hift_file import open_hift
from converters.cosyvoice2.hift_geometry import form_of, widths_of
from converters.precision import VENDORS_LEAST_WINDOWS
from converters.remembered import Remembered
from converters.stages import Array, Checkpoint, OpenSession, Session, StageOptions
from models.cosyvoice2.f0 import Pitch, pitch_of
from models.cosyvoice2.hift import Hift, hift_of
from models.cosyvoice2.hift_config import HARMONICS
from models.cosyvoice2.hift_graph import (
    BEFORE,
    CACHED,
    HAR,
    MEL,
    NOISE,
    PITCH,
    SOURCE,
    TURNS,
    f0_graph,
    hift_graph,
    host_graph,
)
from models.cosyvoice2.hift_runs import pitched, vocoded_and_watched
from models.cosyvoice2.hift_turns import in_half_turns
from models.cosyvoice2.source import Excitation
from surgery.sine_chains import UNIT

PROOF_SEED, OTHER_SEED = 0, 1
"""Of what most gates run on, and of what the sines' reach is looked at on too."""

CALIBRATION_SEEDS = range(2, 2 + VENDORS_LEAST_WINDOWS)
"""Of what ranges of 8 bits are found on, where they are asked for."""

KEPT_RUNS = 2
"""Of each exported engine: what is compared of it is compared on few windows."""


class Seam(NamedTuple):
    """What the vocoder takes of a stretch: mel [1, M, N] and har [1, 18, 120 N + 1]."""

    mel: FloatArray
    har: FloatArray


class HiftOpening:
    """An open checkpoint, of the vocoder and of its predictor of pitch."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.widths, self.form = widths_of(options), form_of(options)
        self.calibrates = options.precision == W8A8
        opened = open_hift(checkpoint)
        self.config, self.weights = opened.config, opened.weights
        self._sessions: dict[tuple[str, int], Session] = {}

    @cached_property
    def hift(self) -> Hift:
        """The vocoder in the reference's arithmetic."""
        return hift_of(self.weights, self.config)

    @cached_property
    def turned(self) -> Hift:
        """The vocoder as it is exported: sines' arguments in units of pi where convolutions can take that in."""
        return hift_of(in_half_turns(self.weights, UNIT), self.config)

    @cached_property
    def pitch(self) -> Pitch:
        """The predictor of pitch in the reference's arithmetic."""
        return pitch_of(self.weights, self.config)

    @cached_property
    def excitation(self) -> Excitation:
        """The host half as a module."""
        return Excitation(self.weights)

    @cached_property
    def host(self) -> ir.Model:
        """The host half."""
        return host_graph(self.excitation)

    @cached_property
    def host_session(self) -> Session:
        """The host half, opened."""
        return self.open_session(self.host)

    def hift_model(self, width: int) -> ir.Model:
        """The vocoder for so many frames, before any pass."""
        return hift_graph(self.turned, self.config, width)

    def f0_model(self, width: int) -> ir.Model:
        """The predictor for so many frames, before any pass."""
        return f0_graph(self.pitch, self.config, width)

    def known(self, model: ir.Model, what: str, width: int) -> Session:
        """`model`, opened once, which runs nothing twice that gates share."""
        if (what, width) not in self._sessions:
            self._sessions[what, width] = Remembered(self.open_session(model), KEPT_RUNS)
        return self._sessions[what, width]

    def mel(self, frames: int, seed: int, level: float = USUAL) -> FloatArray:
        """Drawn mel frames [1, M, N]."""
        return drawn_mel(self.config.mels, frames, seed, level)

    def seam(self, frames: int, seed: int, level: float = USUAL) -> Seam:
        """What the vocoder takes of drawn frames, its source by the host half on a drawn pitch."""
        har, _, _ = self.excited(drawn_pitch(frames, seed), drawn_noise(frames, seed))
        return Seam(self.mel(frames, seed, level), har)

    def excited(
        self, pitch: FloatArray, noise: FloatArray, before: FloatArray | None = None, known: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """har, source and turns by the host half in onnxruntime; of a stream's start where nothing else is given."""
        feed: dict[str, Array] = {
            PITCH: pitch,
            NOISE: noise,
            BEFORE: np.zeros((1, HARMONICS), np.float32) if before is None else before,
            CACHED: np.zeros((1, 0), np.float32) if known is None else known,
        }
        got = self.host_session(feed)
        har, source, turns = (np.asarray(got[name], np.float32) for name in (HAR, SOURCE, TURNS))
        return har, source, turns

    def vocoded(self, seam: Seam) -> FloatArray:
        """The spectrogram [1, 18, 120 N + 1] by the module."""
        return vocoded_and_watched(self.hift, seam.mel, seam.har)[0]

    def pitched(self, mel: FloatArray) -> FloatArray:
        """The pitch [1, N] by the module."""
        return pitched(self.pitch, mel)

    @cached_property
    def long(self) -> Seam:
        """A stretch of several windows, whose whole decode windows are compared with."""
        return self.seam(2 * max(self.widths) + min(self.widths), PROOF_SEED)

    @cached_property
    def whole(self) -> FloatArray:
        """Its whole decode."""
        return self._watched_long[0]

    @cached_property
    def _watched_long(self) -> tuple[FloatArray, list[FloatArray]]:
        return vocoded_and_watched(self.hift, self.long.mel, self.long.har)

    @cached_property
    def arguments(self) -> list[FloatArray]:
        """How far the sines' arguments go on what most gates run on, and near silence and loud; in units of pi."""
        frames = max(self.widths)
        levels = [self._watched_arguments(self.seam(frames, PROOF_SEED, level)) for level in (QUIET, LOUD)]
        return [np.maximum.reduce(found) for found in zip(self._watched_long[1], *levels, strict=True)]

    @cached_property
    def other_arguments(self) -> list[FloatArray]:
        """The same on other frames."""
        return self._watched_arguments(self.seam(max(self.widths), OTHER_SEED))

    def _watched_arguments(self, seam: Seam) -> list[FloatArray]:
        return vocoded_and_watched(self.hift, seam.mel, seam.har)[1]

    def feed(self, width: int, seed: int = PROOF_SEED) -> dict[str, Array]:
        """A window of the long stretch as an engine takes it; of another seed, one of its own."""
        seam = self.part(0, width) if seed == PROOF_SEED else self.seam(width, seed)
        return {MEL: seam.mel, HAR: seam.har}

    def calibration(self, width: int) -> tuple[dict[str, Array], ...]:
        """Windows for the vocoder's ranges of 8 bits; none in fp16."""
        return tuple(self.feed(width, seed) for seed in CALIBRATION_SEEDS) if self.calibrates else ()

    def part(self, start: int, width: int) -> Seam:
        """The window of the long stretch at frame `start`."""
        rate = (self.long.har.shape[-1] - 1) // self.long.mel.shape[-1]
        stop = start + width
        return Seam(self.long.mel[..., start:stop], self.long.har[..., rate * start : rate * stop + 1])
