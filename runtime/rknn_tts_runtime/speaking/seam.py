"""Runs the host half of a VITS voice (Piper, Inflect): what stands at the decoder's seam, of noise that a seed draws.

How many frames N a sentence takes is known only behind the host half, and the latent's noise may be longer than that,
not shorter. So a guess is drawn; where a sentence takes more, it is run again. Noise is drawn frame by frame, so what a
frame gets does not depend on the guess.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, NamedTuple

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import HostSession
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.speaking.window_decoder import LATENT, MASK
from rknn_tts_runtime.windows import FloatArray

FRAMES_AN_ID = 8
"""Of the guess, at the usual speed: Piper's default voice takes 2.3."""

LEAST_FRAMES = 64
"""Of the guess: one phoneme alone may be long."""


class AtSeam(NamedTuple):
    """What the decoder takes: the latent `[1, C, N]`, its mask `[1, 1, N]`, and what else by name."""

    latent: FloatArray
    mask: FloatArray
    given: dict[str, FloatArray]


@dataclass(frozen=True)
class LatentNoise:
    """The noise of a sentence's latent, standard normal.

    Attributes:
        name: the host half's input; None where it draws none.
        seed: the utterance's, the sentence's place in it, and which of the sentence's noises it is.
        channels: C of the latent.
        guess: frames that the sentence hardly exceeds.
    """

    name: str | None
    seed: tuple[int, int, int]
    channels: int
    guess: int

    def of(self, frames: int) -> dict[str, Array]:
        """So many frames of it, `[1, C, frames]`, by its name."""
        if self.name is None:
            return {}
        drawn = np.random.default_rng(self.seed).standard_normal((1, frames, self.channels), dtype=np.float32)
        return {self.name: np.ascontiguousarray(drawn.transpose(0, 2, 1))}


def frames_guessed(ids: int, length_scale: float) -> int:
    """Frames that a sentence of so many `ids` hardly exceeds."""
    return max(LEAST_FRAMES, int(FRAMES_AN_ID * ids * max(1.0, length_scale)))


def at_seam(session: HostSession, feed: Mapping[str, Array], noise: LatentNoise) -> AtSeam:
    """What stands at the seam.

    Args:
        session: the host half.
        feed: all that it takes but `noise`.
        noise: the latent's.

    Raises:
        BadInput: the host half takes something else.
        Mismatch: its latent has other channels than the noise.
        RunFault: it failed.
    """
    try:
        return _run(session, {**feed, **noise.of(noise.guess)})
    except RunFault:
        if noise.name is None:
            raise
        # Perhaps the noise was too short. One zero stands for all of it, however long it need be.
        quiet = _run(session, {**feed, noise.name: np.zeros((1, 1, 1), np.float32)}).latent
        if quiet.shape[1] != noise.channels:
            raise Mismatch(
                f"{session.path}: gives a latent of {quiet.shape[1]} channels, and the decoder's engine takes "
                f"{noise.channels}: they are of two voices. Copy an engine, its manifest and its host half together."
            ) from None
        if quiet.shape[-1] <= noise.guess:
            raise
        return _run(session, {**feed, **noise.of(quiet.shape[-1])})


def check_outputs(session: HostSession) -> None:
    """See that a host half gives what the decoder takes.

    Raises:
        BadInput: it does not.
    """
    given = [info.name for info in session.outputs]
    if LATENT not in given or MASK not in given:
        raise BadInput(
            f"{session.path}: is no host half of a decoder: it gives {', '.join(given)}, and not {LATENT} and {MASK}."
        )


def _run(session: HostSession, feed: Mapping[str, Array]) -> AtSeam:
    got = session.run([info.name for info in session.outputs if info.dtype == "float32"], feed)
    floats = {name: np.asarray(array, np.float32) for name, array in got.items()}
    return AtSeam(floats.pop(LATENT), floats.pop(MASK), floats)
