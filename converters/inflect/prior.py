"""The model's own prior, as its two published graphs give it: the reference of all gates, and what they speak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.errors import Refusal
from contracts.seed import SEED
from converters.inflect.voice import Voice
from converters.stages import Array, FloatArray, Session
from converters.vits_windows import AUDIO, LATENT, Latent

NOISE_SCALE = 0.667
"""How much of the noise counts: what the release speaks with (its `variation`, VITS's default)."""

BLANK = 0
"""The id between two symbols, and at both ends (`data.add_blank` in the release's config)."""

FEW_SYMBOLS = 24
"""Of a first sentence, which tells how long they get."""

MOST_SYMBOLS = 4096
"""Of a sentence that is long enough; with fewer frames than that the durations are no voice's."""


@dataclass(frozen=True)
class Spoken:
    """What the original gave for one prior: latent and mask at the seam, and its samples [N * hop]."""

    said: Latent
    samples: FloatArray


@dataclass(frozen=True)
class Prior:
    """A sentence's mean, deviation and mask, by the inputs of `decode` that take them: each [1, ..., N]."""

    ids: list[int]
    given: dict[str, FloatArray]

    @property
    def frames(self) -> int:
        """N."""
        return min(array.shape[-1] for array in self.given.values())

    @property
    def channels(self) -> int:
        """C; the mask has one."""
        return max(array.shape[1] for array in self.given.values())

    def first(self, frames: int) -> Prior:
        """Its first frames."""
        return Prior(self.ids, {name: array[..., :frames] for name, array in self.given.items()})


def drawn_ids(voice: Voice, symbols: int) -> list[int]:
    """A sentence of so many drawn symbols, blanks around each; the same for a model each time."""
    drawn = np.random.default_rng(SEED).integers(min(1, voice.symbols - 1), voice.symbols, symbols)
    return [BLANK, *(part for symbol in drawn for part in (int(symbol), BLANK))]


def prior_of(voice: Voice, durations: Session, ids: list[int]) -> Prior:
    """What `durations` makes of a sentence.

    Raises:
        Refusal: what it gives is not of [1, C, N] and one N.
    """
    got = durations(voice.durations_feed(ids))
    given = {name: np.asarray(got[source], np.float32) for name, source in voice.wires.items()}
    shapes = {name: array.shape for name, array in given.items()}
    frames = {shape[-1] if len(shape) == 3 and shape[0] == 1 else 0 for shape in shapes.values()}
    if len(frames) != 1 or 0 in frames or shapes[voice.seam.mask][1] != 1:
        told = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise Refusal(f"{voice.graphs.duration_name}: is not Inflect v2's: [1, C, N] was expected, and it gave {told}.")
    return Prior(ids, given)


def long_prior(voice: Voice, durations: Session, frames: int) -> Prior:
    """The first so many frames of a sentence that is long enough.

    Raises:
        Refusal: none is.
    """
    symbols, prior = FEW_SYMBOLS, prior_of(voice, durations, drawn_ids(voice, FEW_SYMBOLS))
    while prior.frames < frames and symbols < MOST_SYMBOLS:
        # As many as would do by the last one, and a few more, for no two symbols last as long.
        symbols = min(MOST_SYMBOLS, symbols * (frames + frames // 4) // prior.frames + FEW_SYMBOLS)
        prior = prior_of(voice, durations, drawn_ids(voice, symbols))
    if prior.frames < frames:
        raise Refusal(
            f"{voice.graphs.duration_name}: no sentence of this model gets long enough to be checked: {symbols} "
            f"symbols take {prior.frames} frames, {frames} are needed."
        )
    return prior.first(frames)


def drawn_noise(channels: int, frames: int) -> FloatArray:
    """Standard normal [1, channels, frames]; the same each time, and a longer one begins as a shorter does."""
    drawn = np.random.default_rng(SEED).standard_normal((frames, channels)).astype(np.float32)
    return np.ascontiguousarray(drawn.T[None])


def speak(voice: Voice, decode: Session, prior: Prior, noise: FloatArray) -> Spoken:
    """The original on a prior: `decode.onnx` as it is, its latent read out of the same run (`watched_decode`).

    Raises:
        Refusal: the samples are not hop times the frames, or the latent is none.
    """
    feed: dict[str, Array] = {
        **prior.given,
        voice.seam.noise: noise[..., : prior.frames],
        **voice.scale(NOISE_SCALE),
    }
    got = decode(feed)
    latent, samples = np.asarray(got[LATENT], np.float32), np.asarray(got[AUDIO], np.float32).reshape(-1)
    if latent.ndim != 3 or latent.shape[-1] != prior.frames or samples.size != prior.frames * voice.seam.hop:
        raise Refusal(
            f"{voice.graphs.decode_name}: {prior.frames} frames gave a latent {list(latent.shape)} and {samples.size} "
            f"samples, though the strides behind the seam make {voice.seam.hop} a frame."
        )
    return Spoken(Latent(latent, prior.given[voice.seam.mask]), samples)


def prior_sum(voice: Voice, prior: Prior, noise: FloatArray) -> FloatArray | None:
    """The latent of `prior` with `noise`, m + exp(logs) noise scale, by no graph: so that a seam elsewhere is heard of.

    None where mean and logarithm of the deviation are not two of the inputs.
    """
    seam = voice.seam
    others = [name for name in prior.given if name not in (seam.mean, seam.mask)]
    if seam.mean not in prior.given or len(others) != 1:
        return None
    scale = np.float32(1.0 if seam.scale is None else NOISE_SCALE)
    return prior.given[seam.mean] + np.exp(prior.given[others[0]]) * noise[..., : prior.frames] * scale
