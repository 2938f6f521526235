"""Walks windows of a fixed width over an utterance whose engine gives spectrogram columns (Kokoro's generator).

N frames make `columns_per_frame * N + 1` columns, because the transform is centred: the first column lies on the first
sample, the closing one behind the last. A window of W frames that starts at frame s reads and gives the columns from
`columns_per_frame * s` to `columns_per_frame * (s + W)`, both included, so the column on a seam is in both of its
windows. The later one overwrites it; with an overlap it fades in over the columns before.

Which windows there are: see `plan_windows`. Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.windows import FloatArray, WindowStep, cut_window, plan_windows

RunSpectrogramWindow = Callable[[FloatArray, FloatArray, int], "npt.NDArray[Any]"]
"""Computes one window: takes x `[1, K, W]`, har `[1, H, columns_per_frame * W + 1]` and how many of the W frames are
the utterance's, returns `[1, C, columns_per_frame * W + 1]` in an array that later calls leave alone."""

KOKORO_RATES = (10, 60)
"""Columns per frame where Kokoro's generator normalises: behind its first upsampling, and behind both."""

KOKORO_CLOSING = (0, 1)
"""Columns beyond the frames' own at those rates: a reflection behind the last upsampling adds one."""


def walk_spectrogram_windows(
    run: RunSpectrogramWindow,
    x: FloatArray,
    har: FloatArray,
    width: int,
    left: int,
    right: int,
    columns_per_frame: int,
    overlap: int = 0,
) -> Iterator[tuple[WindowStep, npt.NDArray[Any]]]:
    """Compute window by window, yielding each step with the columns of the frames it emits, its seams included.

    Args:
        run: computes one window; told the valid frames so that it can make masks (`frame_masks`).
        x: latent of the utterance, `[1, K, N]`.
        har: its harmonic conditioning, `[1, H, columns_per_frame * N + 1]`.
        width: width W of the window in frames.
        left: frames of context before the emitted ones.
        right: frames of context after them.
        columns_per_frame: spectrogram columns per frame.
        overlap: frames that two neighbours both emit.

    Yields:
        The step and its columns `[1, C, columns_per_frame * (emit_stop - emit_start) + 1]`, as `run` gave them.
        `join_columns` makes one spectrogram of them.

    Raises:
        ValueError: `har` is not as long as `x` asks, the geometry is wrong, or `run` does not return
            `columns_per_frame * width + 1` columns.
    """
    if columns_per_frame < 1:
        raise ValueError(f"a frame needs at least one column, not {columns_per_frame}")
    frames = x.shape[-1]
    if har.shape[-1] != columns_per_frame * frames + 1:
        raise ValueError(
            f"{frames} frames need har of {columns_per_frame} x {frames} + 1 = {columns_per_frame * frames + 1} "
            f"columns, not {har.shape[-1]}"
        )
    expected = columns_per_frame * width + 1
    for step in plan_windows(frames, width, left, right, overlap):
        har_window = cut_window(har, columns_per_frame * step.start, columns_per_frame * step.valid + 1, expected)
        columns = np.asarray(run(cut_window(x, step.start, step.valid, width), har_window, step.valid))
        if columns.ndim != 3 or columns.shape[0] != 1 or columns.shape[-1] != expected:
            raise ValueError(
                f"the window at frame {step.start} gave {list(columns.shape)}, expected [1, C, {expected}]: "
                f"{width} frames x {columns_per_frame} + 1 columns"
            )
        first = columns_per_frame * (step.emit_start - step.start)
        last = columns_per_frame * (step.emit_stop - step.start)
        yield step, columns[..., first : last + 1]


def join_columns(pieces: Iterable[npt.NDArray[Any]], overlap_columns: int = 0) -> Iterator[npt.NDArray[Any]]:
    """Join what neighbouring windows emit, yielding columns as soon as no later window changes them.

    Over the first n = `overlap_columns` columns of a piece, the i-th is

        (1 - w) earlier + w later,  w = (1 - cos(pi i / n)) / 2

    and the one behind them is the later piece's alone. With n = 0 that is the seam column, overwritten: a hard cut.

    Args:
        pieces: `[..., columns]` each; the first `overlap_columns + 1` columns of each are the last of the one before,
            and it has more than these.
        overlap_columns: columns per frame times the overlap of the walk in frames.

    Yields:
        The columns in their order. The last yield is the rest of the last piece.
    """
    ramp = np.arange(overlap_columns) / max(overlap_columns, 1)
    later = (0.5 - 0.5 * np.cos(np.pi * ramp)).astype(np.float32)
    held: npt.NDArray[Any] | None = None
    for piece in pieces:
        joined = piece
        if held is not None and overlap_columns:
            joined = piece.copy()
            joined[..., :overlap_columns] *= later
            joined[..., :overlap_columns] += (1 - later) * held[..., :overlap_columns]
        settled = joined.shape[-1] - overlap_columns - 1
        yield joined[..., :settled]
        held = joined[..., settled:]
    if held is not None:
        yield held


def stream_columns(
    run: RunSpectrogramWindow,
    x: FloatArray,
    har: FloatArray,
    width: int,
    left: int,
    right: int,
    columns_per_frame: int,
    overlap: int = 0,
) -> Iterator[npt.NDArray[Any]]:
    """Compute a whole utterance through windows of a fixed width, yielding columns as soon as they are final.

    Args:
        run, x, har, width, left, right, columns_per_frame, overlap: as `walk_spectrogram_windows`. Neighbours
            cross-fade over `overlap` frames; 0 is a hard cut.

    Yields:
        Columns `[1, C, n]`, those of `walk_spectrogram` in all. A window's last `columns_per_frame * overlap + 1` are
        held back for the next one, which changes them.

    Raises:
        ValueError: as `walk_spectrogram_windows`.
    """
    walked = walk_spectrogram_windows(run, x, har, width, left, right, columns_per_frame, overlap)
    yield from join_columns((columns for _, columns in walked), columns_per_frame * overlap)


def walk_spectrogram(
    run: RunSpectrogramWindow,
    x: FloatArray,
    har: FloatArray,
    width: int,
    left: int,
    right: int,
    columns_per_frame: int,
    overlap: int = 0,
) -> npt.NDArray[Any]:
    """Compute the spectrogram of a whole utterance through windows of a fixed width.

    Args:
        run, x, har, width, left, right, columns_per_frame, overlap: as `stream_columns`.

    Returns:
        The columns `[1, C, columns_per_frame * N + 1]`, of the type that `run` returns.

    Raises:
        ValueError: as `walk_spectrogram_windows`.
    """
    return np.concatenate(list(stream_columns(run, x, har, width, left, right, columns_per_frame, overlap)), axis=-1)


def frame_masks(
    valid: int, width: int, rates: Sequence[int] = KOKORO_RATES, closing: Sequence[int] = KOKORO_CLOSING
) -> tuple[FloatArray, ...]:
    """The masks of a window at each rate: 1 over the columns of its valid frames, 0 over the padding's.

    Args:
        valid: frames of the utterance in the window, from its start on.
        width: width of the window in frames.
        rates: columns per frame, one for each mask.
        closing: columns beyond the frames' own, one for each mask.

    Returns:
        For each rate a mask `[1, 1, rate * width + closing]` that begins with `rate * valid + closing` ones.

    Raises:
        ValueError: the window cannot hold that many valid frames, or the two lists differ in length.
    """
    if not 1 <= valid <= width:
        raise ValueError(f"a window of {width} frames cannot hold {valid} valid ones")
    if len(rates) != len(closing):
        raise ValueError(f"{len(rates)} rates need as many closing columns, not {len(closing)}")
    return tuple(
        cut_window(np.ones((1, 1, rate * valid + extra), np.float32), 0, rate * valid + extra, rate * width + extra)
        for rate, extra in zip(rates, closing)
    )
