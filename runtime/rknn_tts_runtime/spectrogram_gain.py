"""What `gain` of a plan does to a generator's windows, by a full-length decode of the same utterance (Kokoro).

A generator that normalises by its own window makes each window another loudness than the whole utterance has, and fp16
makes the bins below the Nyquist frequency 10 to 24 times too strong in some columns, which clicks (reference, Kokoro
measurements). So, where a full-length decode in float32 is at hand:

    loudness   the log magnitudes of a window are shifted by ln(r' / r), r and r' the root mean squares of what the
               window emits and of the decode over the same columns
    cap        the top five of the eleven log magnitudes, 7.2 to 12 kHz, are at most the decode's, column by column

On the reference's board the worst columns came down from 14.7 times the decode's to 2.8; it takes 1.9 times as long,
for the decode runs once for each utterance. The reference tells of both, and not how it measures loudness: the power of
a column is here that of the real signal that its bins stand for (Parseval), the inner ones twice. Phases stay as they
are.

Not measured on a board. Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.windows import WindowStep

CAPPED_ROWS = 5
"""Log magnitudes that are capped, from the highest bin on (reference, "params.gain")."""


def correct_windows(
    walked: Iterable[tuple[WindowStep, npt.NDArray[Any]]], decode: npt.NDArray[Any], columns_per_frame: int
) -> Iterator[tuple[WindowStep, npt.NDArray[Any]]]:
    """The windows of a walk, each with the decode's loudness and cap; `join_columns` makes one spectrogram of them.

    Args:
        walked: steps and columns of `walk_spectrogram_windows`.
        decode: the whole utterance's columns by a full-length decode, `[1, C, columns_per_frame * N + 1]`.
        columns_per_frame: spectrogram columns per frame.

    Yields:
        The step and its columns, of their shape and type.

    Raises:
        ValueError: the decode is not of that utterance, by its shape.
    """
    for step, columns in walked:
        first, last = columns_per_frame * step.emit_start, columns_per_frame * step.emit_stop
        yield step, corrected(columns, decode[..., first : last + 1])


def corrected(columns: npt.NDArray[Any], decode: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Columns with the loudness and the cap of a decode of the same frames.

    Args:
        columns: what an engine gave: C / 2 log magnitudes and C / 2 phase arguments, `[1, C, F]`.
        decode: the same of a full-length decode.

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
    made[:, :bins] += np.asarray(_loudness_difference(columns[:, :bins], decode[:, :bins]), columns.dtype)
    top = slice(max(0, bins - CAPPED_ROWS), bins)
    made[:, top] = np.minimum(made[:, top], decode[:, top])
    return made


def _loudness_difference(log_magnitudes: npt.NDArray[Any], of_decode: npt.NDArray[Any]) -> float:
    """What is added to log magnitudes `[1, bins, F]` to give them the decode's power; 0 where either has none."""
    power, owed = _power(log_magnitudes), _power(of_decode)
    if not (0 < power < np.inf and 0 < owed < np.inf):
        return 0.0
    return float((np.log(owed) - np.log(power)) / 2)


def _power(log_magnitudes: npt.NDArray[Any]) -> float:
    """Power of the real signal of log magnitudes `[1, bins, F]`, as a sum: all bins but the outer two count twice."""
    twice = np.full((log_magnitudes.shape[1], 1), 2.0)
    twice[[0, -1]] = 1.0
    with np.errstate(over="ignore"):  # infinite is no power, either
        return float(np.sum(twice * np.exp(2 * log_magnitudes.astype(np.float64))))
