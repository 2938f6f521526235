"""What a Piper voice's host half is fed, beside ids or an encoder's outputs.

    ids or an encoder's outputs, lengths, scales, who speaks, noise -> z [1, C, N], y_mask [1, 1, N] (, g [1, G, 1])

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import HostSession, HostTensor
from rknn_tts_runtime.speaking.piper_voice import PiperVoice
from rknn_tts_runtime.speaking.seam import LatentNoise, frames_guessed

SPEAKER = "g"
"""The speaker's embedding."""

NOISE_LATENT, NOISE = "noise_latent", "noise_"
"""The latent's noise; how all noises' names begin (converters/piper/names.py)."""

WIDEST_NOISE = 512
"""Channels of noises but the latent's, one step an id; what is not needed is cut off. Durations take 2, an encoder of
VITS is 192 wide (the toolchain's gates give as many)."""


@dataclass(frozen=True)
class Sentence:
    """A sentence that is to be spoken.

    Attributes:
        ids: as the voice takes them.
        scales: noise scale, length scale, noise width.
        speaker: who speaks.
        seed: of its noise: the utterance's.
        place: its place in the utterance, from 0 on.
    """

    ids: tuple[int, ...]
    scales: tuple[float, float, float]
    speaker: int
    seed: int
    place: int


def host_feed(session: HostSession, voice: PiperVoice, sentence: Sentence) -> dict[str, Array]:
    """What `session` takes of `sentence`, but for the latent's noise.

    Of the encoder's outputs, which it may take, and further inputs (prosody features, say) there are zeros, as in the
    toolchain's gates: open axes behind the first are of the ids' number.
    """
    names, count = voice.inputs, len(sentence.ids)
    known: dict[str, Array] = {
        names.ids: np.array([sentence.ids], np.int64),
        names.lengths: np.array([count], np.int64),
        names.scales: np.array(sentence.scales, np.float32),
    }
    feed: dict[str, Array] = {}
    for place, info in enumerate(session.inputs):
        if info.name in known:
            feed[info.name] = known[info.name]
        elif info.name.startswith(NOISE):
            # The place in the seed is never 0: that is the latent's.
            drawn = np.random.default_rng((sentence.seed, sentence.place, 1 + _noise_place(session, place)))
            feed[info.name] = drawn.standard_normal((1, WIDEST_NOISE, count), dtype=np.float32)
        else:
            number = sentence.speaker if info.name == names.speaker else 0
            feed[info.name] = np.full(_sizes(info, count), number, info.dtype)
    feed.pop(NOISE_LATENT, None)
    return feed


def latent_noise(session: HostSession, sentence: Sentence, channels: int) -> LatentNoise:
    """The noise of the latent of `sentence`, which has so many `channels`."""
    names = [info.name for info in session.inputs]
    return LatentNoise(
        name=NOISE_LATENT if NOISE_LATENT in names else None,
        seed=(sentence.seed, sentence.place, 0),
        channels=channels,
        guess=frames_guessed(len(sentence.ids), sentence.scales[1]),
    )


def _noise_place(session: HostSession, place: int) -> int:
    """Which of the noises the input at `place` is: the same in both host halves of a voice."""
    return sum(info.name.startswith(NOISE) for info in session.inputs[:place])


def _sizes(info: HostTensor, count: int) -> tuple[int, ...]:
    return tuple(size if size is not None else count if axis else 1 for axis, size in enumerate(info.shape))
