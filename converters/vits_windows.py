"""What decoders of a VITS have in common whose fixed window is walked over a latent: the window, latents, their decode.

Such a decoder takes a latent `z` [1, C, N] and its frame mask `y_mask` [1, 1, N], and gives `audio`, N * hop samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from rknn_tts_runtime.windows import cut_window, decode_windowed

from contracts.contract import Window
from contracts.errors import UserInput
from converters.stages import Array, FloatArray, Session

LATENT, MASK, AUDIO = "z", "y_mask", "audio"
"""Names of a decoder's inputs and its output."""

PLACE = "place"
"""Name of the input by which an engine of trimmed windows is told where in its utterance a window lies."""

PADDED_PART = 3
"""Of a window with padding: one in so many frames is."""


@dataclass(frozen=True)
class Latent:
    """What stands at the seam, float32.

    Attributes:
        latent: [1, C, N].
        mask: its frame mask, [1, 1, N].
        given: what is the same for all frames: the speaker's embedding of a voice of several speakers.
    """

    latent: FloatArray
    mask: FloatArray
    given: Mapping[str, Array] = field(default_factory=dict)

    @property
    def frames(self) -> int:
        """N."""
        return int(self.mask.shape[-1])

    @property
    def feed(self) -> dict[str, Array]:
        """As inputs of a decoder."""
        return {LATENT: self.latent, MASK: self.mask, **self.given}

    def first(self, frames: int) -> Latent:
        """Its first frames."""
        return Latent(self.latent[..., :frames], self.mask[..., :frames], self.given)

    def padded(self) -> Latent:
        """The same with its last third replaced by padding, as a walk pads a short utterance: zeros."""
        kept = self.frames - self.frames // PADDED_PART
        return Latent(
            cut_window(self.latent[..., :kept], 0, kept, self.frames),
            cut_window(self.mask[..., :kept], 0, kept, self.frames),
            self.given,
        )


@dataclass(frozen=True)
class UsualWindow:
    """A stage's default window, and how wide one may be.

    Attributes:
        emitted: frames that an interior window emits.
        context: frames on each side.
        widest: frames of the widest window that can be checked.
    """

    emitted: int
    context: int
    widest: int


def window_of(
    usual: UsualWindow,
    frames: int | None,
    context: int | None,
    hop: int,
    sample_rate: int | None,
    asked: str | None = None,
) -> Window:
    """The window of `frames` with `context` on each side, the usual ones where the user says nothing.

    Args:
        usual: the stage's.
        frames, context: what the user says.
        hop: samples per frame.
        sample_rate: samples per second.
        asked: how the user wrote the width, where not as `--window`.

    Raises:
        UserInput: the context leaves nothing to emit, or the window is wider than can be checked.
    """
    context = usual.context if context is None else context
    frames = usual.emitted + 2 * context if frames is None else frames
    emitted = frames - 2 * context
    asked = f"--window {frames}" if asked is None else asked
    if frames > usual.widest:
        raise UserInput(f"{asked}: the widest window that can be checked has {usual.widest} frames.")
    if context < 0 or emitted < 1:
        raise UserInput(
            f"{asked} --context {context}: a window needs room for the context on both sides and "
            f"at least one frame to emit: {asked.split()[0]} {2 * max(context, 0) + 1} or more."
        )
    return Window(frames, emitted, context, context, hop, sample_rate)


def decode(session: Session, said: Latent, given: Mapping[str, Array] | None = None) -> FloatArray:
    """The samples of a decoder on all of `said`; `given` are its other inputs."""
    return np.asarray(session({**(given or {}), **said.feed})[AUDIO], np.float32).reshape(-1)


def decode_by_windows(session: Session, said: Latent, window: Window, context: int) -> FloatArray:
    """The same by windows of `window`'s width with another `context`, as the board walks."""

    def run(latent: FloatArray, mask: FloatArray) -> FloatArray:
        return decode(session, Latent(latent, mask, said.given))

    pcm = decode_windowed(run, said.latent, said.mask, window.frames, context, context, window.hop)
    return np.asarray(pcm, np.float32)
