"""A Kokoro checkpoint that is open: what both engines are made of and compared with, made when somebody needs it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.contract import Contract, TensorSpec
from contracts.thresholds import SIMULATOR
from converters.kokoro.checkpoint import open_checkpoint
from converters.kokoro.geometry import FULL, SHORT, geometry_of
from converters.kokoro.host_half import host_half
from converters.kokoro.utterances import WEATHER, YES, Utterance, speak, speak_long
from converters.kokoro.vocabulary import vocabulary_of
from converters.kokoro.voices import Voices, read_voices
from converters.stages import Checkpoint, OpenSession, Session, StageOptions
from models.kokoro.generator import Generator
from models.kokoro.generator_graph import SPECTROGRAM
from models.kokoro.generator_weights import generator_weights, in_half_turns
from surgery.sine_chains import UNIT
from surgery.sine_forms import Form

SIMULATOR_DB = {FULL: 59.0, SHORT: 55.0}
"""Least simulator SNR against the original generator: 60.3 dB was measured for `full` in a prototype, 60.9 for a padded
window against onnxruntime (family-facts)."""

CLIPPED_DB = 25.0
"""What clipped sines owe in the simulator, as they do in fp32: they are wrong past one wave."""

EDGE_FRAMES = 256
"""Frames of each voice that the reach is measured on, in windows: the first and the last of 128, or more of less."""


class Opening:
    """An open checkpoint: what both engines share is made when somebody needs it, and once."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.config = Path(options.config) if options.config is not None else None
        self.checkpoint = open_checkpoint(checkpoint.path, self.config)
        self.sizes = self.checkpoint.config.istftnet
        self.geometry = geometry_of(options, self.sizes)

    @cached_property
    def original(self) -> Generator:
        """The generator in the reference's arithmetic."""
        return Generator(generator_weights(self.checkpoint.weights, self.sizes), self.sizes).eval()

    @cached_property
    def turned(self) -> Generator:
        """The generator as it is exported: the sines' arguments in units of pi."""
        weights = in_half_turns(generator_weights(self.checkpoint.weights, self.sizes), UNIT)
        return Generator(weights, self.sizes).eval()

    @cached_property
    def double(self) -> tuple[Generator, Generator]:
        """`original` and `turned` in double precision, where nothing but their algebra differs."""
        return copy.deepcopy(self.original).double(), copy.deepcopy(self.turned).double()

    @cached_property
    def host(self) -> ir.Model:
        """The host half."""
        vocabulary = vocabulary_of(self.checkpoint, self.config, self.file.material)
        return host_half(self.checkpoint.weights, self.checkpoint.config, vocabulary)

    @cached_property
    def speaking(self) -> Session:
        """The host half, opened."""
        return self.open_session(self.host)

    @cached_property
    def voices(self) -> Voices:
        """Voices to speak with."""
        assert self.file.material is not None
        return read_voices(self.file.material)

    def spoken(self, voice: str, frames: int | None = None) -> Utterance:
        """A sentence in `voice`, of a window or more; its first `frames` frames."""
        least = self.geometry.window.frames if frames is None else frames
        said = speak_long(self.speaking, self.voices, self.checkpoint.config, f"cat_{voice}", voice, least)
        return said if frames is None else said.part(0, frames)

    @cached_property
    def sentence(self) -> Utterance:
        """What most gates run on: two windows and a quarter, which makes three or more of them."""
        frames = self.geometry.window.frames
        return self.spoken(self.voices.first, 2 * frames + frames // 4 + 1)

    @cached_property
    def edges(self) -> tuple[Utterance, ...]:
        """What the sines' reach is measured on: in every voice, a sentence's first and last window, and between them.

        The silence at both ends makes a normalised signal's peaks the largest (docs/kokoro.md).
        """
        frames = self.geometry.inner or self.geometry.window.frames
        found: list[Utterance] = []
        count = max(2, -(-EDGE_FRAMES // frames))
        for voice in self.voices.styles:
            spoken = self.spoken(voice)
            starts = np.linspace(0, spoken.frames - frames, count).astype(int)
            found += [spoken.part(int(start), frames) for start in starts]
        return tuple(found)

    @cached_property
    def other_sentences(self) -> tuple[Utterance, ...]:
        """Another sentence, of a window or more, in the first and in the last voice."""
        config, frames = self.checkpoint.config, self.geometry.window.frames
        voices = list(dict.fromkeys((self.voices.first, max(self.voices.styles))))
        said = [speak(self.speaking, self.voices, config, f"weather_{voice}", voice, WEATHER) for voice in voices]
        return tuple(
            item if item.frames >= frames else self.spoken(voice, frames)
            for voice, item in zip(voices, said, strict=True)
        )

    @cached_property
    def short_sentences(self) -> tuple[Utterance, ...]:
        """Sentences that one window holds: a short one in every voice, cut where it is longer."""
        frames = self.geometry.window.frames
        said = [
            speak(self.speaking, self.voices, self.checkpoint.config, f"yes_{voice}", voice, YES)
            for voice in self.voices.styles
        ]
        return tuple(item.part(0, min(item.frames, frames)) for item in said)


def contract_of(opening: Opening, role: str, shapes: Mapping[str, tuple[int, ...]]) -> Contract:
    """The contract of the engine for `role`, whose inputs have `shapes`."""
    form = opening.geometry.form
    return Contract(
        family="kokoro",
        stage="generator",
        source=opening.file.source,
        inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
        outputs=(TensorSpec(SPECTROGRAM, ()),),  # its shape is read from the finished graph
        window=opening.geometry.window,
        thresholds={SIMULATOR: CLIPPED_DB if form is Form.CLIP else SIMULATOR_DB[role]},
        role=role,
    )


def notes_of(opening: Opening) -> tuple[str, ...]:
    """What to tell the user about the checkpoint."""
    said = [opening.file.note] if opening.file.note else []
    return (*said, *opening.checkpoint.notes)
