"""Voices a stream of mel frames through a vocoder of fixed widths (CosyVoice2's HiFT), chunk by chunk.

Each chunk is decoded behind the last `OVERLAP` frames of what came before. The audio of those is held back until then,
and fades over into how the later window decodes them, as upstream does it: with the halves of a Hamming window. Where a
chunk leaves room in the narrowest engine that holds it, earlier frames fill that, so that a window ends where the
stream does and holds no padding; only a stream that is shorter than that engine is padded, with silence on its right.

The harmonic source of a frame is made once: a window's first samples of it are those that the window before had
(upstream likewise), and its phases go on where those end, of the pitches that they were made of. Behind the middle of a
window's last frame no pitch told how they go on, so that half a frame is made again. Upstream keeps it, starts phases
at zero in every window, and jumps there.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.istft import istft
from rknn_tts_runtime.windows import FloatArray

OVERLAP = 8
"""Mel frames that two neighbouring windows decode both (upstream's `mel_cache_len`)."""

HOP, N_FFT, ISTFT_HOP = 480, 16, 4
"""Samples of a mel frame; size and step of the inverse transform."""

LARGEST_MAGNITUDE, AUDIO_LIMIT = 100.0, 0.99
"""What upstream cuts magnitudes and samples at."""

MEL_FLOOR = float(np.log(1e-5))
"""A mel frame of silence: upstream's spectrograms are cut there."""

RunPitch = Callable[[FloatArray], "npt.NDArray[Any]"]
"""mel [1, M, W] -> f0 [1, W]."""

RunSource = Callable[[FloatArray, FloatArray, FloatArray], Tuple[FloatArray, FloatArray, FloatArray]]
"""f0 [1, W], what each sine had turned before [1, H], the samples that are known already [1, K] -> har [1, 18, 120 W +
1], all samples [1, 480 W], what each sine has turned at each frame [1, W, H]. It draws the noise."""

RunVocoder = Callable[[FloatArray, FloatArray], "npt.NDArray[Any]"]
"""mel [1, M, W] and har -> spec_phase [1, 18, 120 W + 1]."""


def vocoder_samples(spec_phase: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """The samples [480 W] of a vocoder's raw output [1, 18, 120 W + 1]."""
    cut = np.array(spec_phase, np.float32)
    bins = N_FFT // 2 + 1
    np.minimum(cut[:, :bins], np.float32(np.log(LARGEST_MAGNITUDE)), out=cut[:, :bins])
    return np.clip(istft(cut, N_FFT, ISTFT_HOP), -AUDIO_LIMIT, AUDIO_LIMIT)


class VocoderStream:
    """One stream; `push` takes its chunks."""

    def __init__(
        self,
        run_pitch: RunPitch,
        run_source: RunSource,
        run_vocoder: RunVocoder,
        widths: Sequence[int],
        harmonics: int = 9,
        carries_phase: bool = True,
    ) -> None:
        """A stream at its start.

        Args:
            run_pitch, run_source, run_vocoder: run an engine, or the host half, on a window of one of `widths`.
            widths: in mel frames; the widest is more than `OVERLAP`.
            harmonics: of the source.
            carries_phase: False: phases start at zero in every window, and all of its source is kept, as upstream.

        Raises:
            ValueError: no width is more than `OVERLAP`.
        """
        if not widths or max(widths) <= OVERLAP:
            raise ValueError(f"a window must hold more than the {OVERLAP} frames of overlap, not {list(widths)}")
        self._run_pitch, self._run_source, self._run_vocoder = run_pitch, run_source, run_vocoder
        self._widths, self._carries_phase = sorted(widths), carries_phase
        self._mel: FloatArray = np.zeros((1, 0, 0), np.float32)
        self._source: FloatArray = np.zeros((1, 0), np.float32)
        self._pitch: FloatArray = np.zeros((1, 0), np.float32)
        self._turns: FloatArray = np.zeros((1, 1, harmonics), np.float32)  # of the frame before the first, too
        self._held: FloatArray = np.zeros(0, np.float32)

    def push(self, mel: FloatArray, last: bool = False) -> FloatArray:
        """The samples that a chunk settles.

        Args:
            mel: its frames, [1, M, n]; n may be 0 where it is the last.
            last: whether the stream ends with it: then nothing is held back.

        Returns:
            [s], 480 for each frame but those that are held back: the last `OVERLAP` of a stream that goes on.
        """
        pieces = list(self._pieces(mel))
        samples = [self._step(piece, last and place == len(pieces) - 1) for place, piece in enumerate(pieces)]
        if last and not pieces:
            samples.append(self._held)
        return np.concatenate([np.zeros(0, np.float32), *samples])

    def _pieces(self, mel: FloatArray) -> Iterator[FloatArray]:
        """What one window takes at a time."""
        widest, start = self._widths[-1], 0
        while start < mel.shape[-1]:
            known = start or self._mel.shape[-1]
            stop = start + widest - min(known, OVERLAP)
            yield mel[..., start:stop]
            start = stop

    def _step(self, mel: FloatArray, last: bool) -> FloatArray:
        new, known = mel.shape[-1], self._mel.shape[-1]
        width = next(width for width in self._widths if width >= min(known, OVERLAP) + new)
        filled = min(known + new, width)
        before = filled - new
        history = self._mel[..., known - before :] if before else mel[..., :0]
        window = np.full((1, mel.shape[1], width), MEL_FLOOR, np.float32)
        window[..., :filled] = np.concatenate([history, mel], axis=-1)
        pitch, known_source = self._known_of(window, filled, before)
        har, source, turns = self._run_source(pitch, self._turned(before), known_source)
        samples = vocoder_samples(self._run_vocoder(window, har))[: filled * HOP]
        self._keep_source(source[:, known_source.shape[1] : filled * HOP], before * HOP - known_source.shape[1])
        self._keep(window[..., before:filled], pitch[:, before:filled], turns[:, before:filled])
        out = samples[(before * HOP) - self._held.size :]
        return self._settled(_faded(self._held, out), last)

    def _known_of(self, window: FloatArray, filled: int, before: int) -> tuple[FloatArray, FloatArray]:
        """The pitch of a window's frames, and what is known of its source."""
        pitch = np.array(self._run_pitch(window), np.float32)
        pitch[:, filled:] = 0
        frames, samples = self._pitch.shape[1], self._source.shape[1]
        if not self._carries_phase:
            return pitch, self._source[:, samples - before * HOP :]
        pitch[:, :before] = self._pitch[:, frames - before :]  # of which what is known was made
        return pitch, self._source[:, samples - before * HOP : samples - HOP // 2]

    def _turned(self, before: int) -> FloatArray:
        """What each sine had turned where a window begins, `before` frames ahead of what is new."""
        turned = self._turns[:, self._turns.shape[1] - 1 - before]
        return turned if self._carries_phase else np.zeros_like(turned)

    def _keep_source(self, source: FloatArray, again: int) -> None:
        """Put `source` behind what is known of it, over the last `again` samples of that."""
        known = self._source[:, : self._source.shape[1] - again]
        self._source = np.concatenate([known, source], axis=1)[:, -self._widths[-1] * HOP :]

    def _keep(self, mel: FloatArray, pitch: FloatArray, turns: FloatArray) -> None:
        """Of the stream so far, what the widest window may need."""
        widest = self._widths[-1]
        earlier = self._mel if self._mel.size else mel[..., :0]
        self._mel = np.concatenate([earlier, mel], axis=-1)[..., -widest:]
        self._pitch = np.concatenate([self._pitch, pitch], axis=1)[:, -widest:]
        self._turns = np.concatenate([self._turns, turns], axis=1)[:, -widest - 1 :]

    def _settled(self, out: FloatArray, last: bool) -> FloatArray:
        held = 0 if last else min(OVERLAP * HOP, out.size)
        self._held = out[out.size - held :]
        return out[: out.size - held]


def _faded(earlier: FloatArray, later: FloatArray) -> FloatArray:
    """`later`, over whose beginning `earlier` fades out while it fades in."""
    count = earlier.size
    window = np.hamming(2 * count).astype(np.float32)
    joined = later.copy()
    joined[:count] = later[:count] * window[:count] + earlier * window[count:]
    return joined
