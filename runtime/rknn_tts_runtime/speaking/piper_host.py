"""Runs a Piper voice's host half: what stands at the decoder's seam, of noise that a seed draws.

    ids or an encoder's outputs, lengths, scales, who speaks, noise -> z [1, C, N], y_mask [1, 1, N] (, g [1, G, 1])

How many frames N a sentence takes is known only behind it, and the latent's noise may be longer than that, not shorter.
So a guess is drawn; where a sentence takes more, it is run again. Noise is drawn frame by frame, so what a frame gets
does not depend on the guess.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, NamedTuple

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import HostSession, HostTensor
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.speaking.piper_voice import PiperVoice
from rknn_tts_runtime.speaking.window_decoder import LATENT, MASK
from rknn_tts_runtime.windows import FloatArray

SPEAKER = "g"
"""The speaker's embedding."""

NOISE_LATENT, NOISE = "noise_latent", "noise_"
"""The latent's noise; how all noises' names begin (converters/piper/names.py)."""

FRAMES_AN_ID = 8
"""Of the guess, at the usual speed: the default voice takes 2.3."""

LEAST_FRAMES = 64
"""Of the guess: one phoneme alone may be long."""

WIDEST_NOISE = 512
"""Channels of noises but the latent's, one step an id; what is not needed is cut off. Durations take 2, an encoder of
VITS is 192 wide (the toolchain's gates give as many)."""


class AtSeam(NamedTuple):
    """What the decoder takes: the latent `[1, C, N]`, its mask `[1, 1, N]`, and what else by name."""

    latent: FloatArray
    mask: FloatArray
    given: dict[str, FloatArray]


@dataclass(frozen=True)
class Sentence:
    """A sentence that is to be spoken.

    Attributes:
        ids: as the voice takes them.
        scales: noise scale, length scale, noise width.
        speaker: who speaks.
        seed: of its noise: the utterance's, and the sentence's place in it.
    """

    ids: tuple[int, ...]
    scales: tuple[float, float, float]
    speaker: int
    seed: tuple[int, int]

    @property
    def guess(self) -> int:
        """Frames that it hardly exceeds."""
        return max(LEAST_FRAMES, int(FRAMES_AN_ID * len(self.ids) * max(1.0, self.scales[1])))


def known_feed(session: HostSession, voice: PiperVoice, sentence: Sentence) -> dict[str, Array]:
    """What `session` takes of `sentence`, but for noise, and for what an encoder gives.

    Further inputs (prosody features, say) are zero, as in the toolchain's gates: open axes behind the first are of the
    ids' number.
    """
    names, count = voice.inputs, len(sentence.ids)
    known: dict[str, Array] = {
        names.ids: np.array([sentence.ids], np.int64),
        names.lengths: np.array([count], np.int64),
        names.scales: np.array(sentence.scales, np.float32),
    }
    feed: dict[str, Array] = {}
    for info in session.inputs:
        if info.name in known:
            feed[info.name] = known[info.name]
        elif not info.name.startswith(NOISE):
            number = sentence.speaker if info.name == names.speaker else 0
            feed[info.name] = np.full(_sizes(info, count), number, info.dtype)
    return feed


def at_seam(session: HostSession, feed: Mapping[str, Array], sentence: Sentence, channels: int) -> AtSeam:
    """What stands at the seam.

    Args:
        session: the host half.
        feed: all that it takes but noise.
        sentence: what is spoken.
        channels: C of the latent.

    Raises:
        BadInput: the host half takes something else.
        RunFault: it failed.
    """
    wanted = [info.name for info in session.outputs if info.name in (LATENT, MASK, SPEAKER)]
    names = [info.name for info in session.inputs if info.name.startswith(NOISE)]
    noises = {name: _token_noise(sentence, place) for place, name in enumerate(names) if name != NOISE_LATENT}
    if NOISE_LATENT not in names:
        return _found(session.run(wanted, {**feed, **noises}))

    def spoken(frames: int) -> AtSeam:
        noise = _latent_noise(sentence, names.index(NOISE_LATENT), channels, frames)
        return _found(session.run(wanted, {**feed, **noises, NOISE_LATENT: noise}))

    try:
        return spoken(sentence.guess)
    except RunFault:
        # Perhaps the noise was too short. One zero stands for all of it, however long it need be.
        quiet = _found(session.run(wanted, {**feed, **noises, NOISE_LATENT: np.zeros((1, 1, 1), np.float32)}))
        frames = quiet.latent.shape[-1]
        if frames <= sentence.guess:
            raise
        return spoken(frames)


def _found(got: Mapping[str, Array]) -> AtSeam:
    given = {SPEAKER: np.asarray(got[SPEAKER], np.float32)} if SPEAKER in got else {}
    return AtSeam(np.asarray(got[LATENT], np.float32), np.asarray(got[MASK], np.float32), given)


def _token_noise(sentence: Sentence, place: int) -> Array:
    rng = np.random.default_rng((*sentence.seed, place))
    return rng.standard_normal((1, WIDEST_NOISE, len(sentence.ids)), dtype=np.float32)


def _latent_noise(sentence: Sentence, place: int, channels: int, frames: int) -> Array:
    rng = np.random.default_rng((*sentence.seed, place))
    return np.ascontiguousarray(rng.standard_normal((1, frames, channels), dtype=np.float32).transpose(0, 2, 1))


def _sizes(info: HostTensor, count: int) -> tuple[int, ...]:
    return tuple(size if size is not None else count if axis else 1 for axis, size in enumerate(info.shape))
