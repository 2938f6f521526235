"""What `gain` of a plan does to a generator's windows, by a full-length decode of the same utterance (Kokoro).

A generator that normalises by its own window makes each window another loudness than the whole utterance has, and fp16
makes the bins below the Nyquist frequency 10 to 24 times too strong in some columns, which clicks (reference, Kokoro
measurements). So, where a full-length decode in float32 is at hand:

    loudness   the log magnitudes of a window are shifted by ln(r' / r), where r and r' are the root mean squares of the
               samples that its columns make, and of those that the decode's make of the same columns
    cap        the top five of the eleven log magnitudes, 7.2 to 12 kHz, are at most the decode's, column by column

Loudness is that of samples, for columns alone do not tell it: how their frames add up depends on phases. In float32,
three windows of 289 frames were 1.4, 0.5 and 1.0 dB too quiet, and 0.03 dB at most after that; by the columns' own
power they stayed up to 1.0 dB off. The waveform differs from a full-length decode's as before (SNR 3.3 and 3.0 dB).

On the reference's board the worst columns came down from 14.7 times the decode's to 2.8; it takes 1.9 times as long,
for the decode runs once for each utterance. The reference tells of both, and not how it measures loudness. Phases stay
as they are.

Not measured on a board. Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.istft import KOKORO_HOP, istft
from rknn_tts_runtime.windows import FloatArray, WindowStep

CAPPED_ROWS = 5
"""Log magnitudes that are capped, from the highest bin on (reference, "params.gain")."""


def correct_windows(
    walked: Iterable[tuple[WindowStep, npt.NDArray[Any]]],
    decode: npt.NDArray[Any],
    columns_per_frame: int,
    hop: int = KOKORO_HOP,
) -> Iterator[tuple[WindowStep, npt.NDArray[Any]]]:
    """The windows of a walk, each with the decode's loudness and cap; `join_columns` makes one spectrogram of them.

    Args:
        walked: steps and columns of `walk_spectrogram_windows`.
        decode: the whole utterance's columns by a full-length decode, `[1, C, columns_per_frame * N + 1]`.
        columns_per_frame: spectrogram columns per frame.
        hop: samples from a column to the next.

    Yields:
        The step and its columns, of their shape and type.

    Raises:
        ValueError: the decode is not of that utterance, by its shape.
    """
    for step, columns in walked:
        first, last = columns_per_frame * step.emit_start, columns_per_frame * step.emit_stop
        yield step, corrected(columns, decode[..., first : last + 1], hop)


def corrected(columns: npt.NDArray[Any], decode: npt.NDArray[Any], hop: int = KOKORO_HOP) -> npt.NDArray[Any]:
    """Columns with the loudness and the cap of a decode of the same frames.

    Args:
        columns: what an engine gave: C / 2 log magnitudes and C / 2 phase arguments, `[1, C, F]`.
        decode: the same of a full-length decode.
        hop: samples from a column to the next.

    Returns:
        `[1, C, F]` of the type of `columns`, in an array of its own.

    Raises:
        ValueError: the two differ in shape, or have no even number of rows.
    """
    if columns.shape != decode.shape or columns.ndim != 3 or columns.shape[1] % 2:
        raise ValueError(
            f"columns {list(columns.shape)} need a full-length decode of the same frames, not {list(decode.shape)}"
        )
    bins = columns.shape[1] // 2
    made = columns.copy()
    made[:, :bins] += np.asarray(_loudness_difference(columns, decode, hop), columns.dtype)
    top = slice(max(0, bins - CAPPED_ROWS), bins)
    made[:, top] = np.minimum(made[:, top], decode[:, top])
    return made


def _loudness_difference(columns: npt.NDArray[Any], decode: npt.NDArray[Any], hop: int) -> float:
    """What is added to log magnitudes to make samples as loud as the decode's; 0 where either has no loudness."""
    loudness, owed = _loudness(columns, hop), _loudness(decode, hop)
    if not (0 < loudness < np.inf and 0 < owed < np.inf):
        return 0.0
    return float(np.log(owed) - np.log(loudness))


def _loudness(columns: npt.NDArray[Any], hop: int) -> float:
    """Root mean square of the samples of columns `[1, n_fft + 2, F]`; 0 of one column, which makes none."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite has no loudness, either
        samples: FloatArray = istft(columns, columns.shape[1] - 2, hop)
        return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
