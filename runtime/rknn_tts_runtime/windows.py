"""Walks windows of a fixed width over an utterance of any length.

For an utterance of N frames and a window of W: where N >= W no window contains padding, the first starts at 0 and the
last ends at N, and each emits the frames whose context it holds. Only N < W pads, on the right, with the mask zero
there. (Padding the first window on the left instead costs a Piper utterance all but 18 to 31 dB.)

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
RunWindow = Callable[..., "npt.NDArray[Any]"]
"""Decodes one window: takes the windows of the cut arrays in their order, returns `W * hop` samples of any shape."""


class WindowStep(NamedTuple):
    """One window of a walk, in frames of the utterance.

    Attributes:
        start: the frame on which the window starts.
        valid: how many frames of the utterance it holds, from its start on; the rest of its width is padding.
        emit_start: the first frame it emits.
        emit_stop: the frame after the last it emits.
    """

    start: int
    valid: int
    emit_start: int
    emit_stop: int


def plan_windows(frames: int, width: int, left: int, right: int, overlap: int = 0) -> list[WindowStep]:
    """The windows that emit every frame of an utterance, in order.

    A window in the middle emits `width - left - right` frames. The first also emits its left edge and the last its
    right edge: nothing lies beyond them. The last starts at `frames - width`, so it overlaps the one before by as much
    as it must, holds at least `left` frames of context, and emits what is left.

    Each window's first `overlap` emitted frames are the last that the window before emits, for a cross-fade; every
    other frame is emitted exactly once.

    Args:
        frames: length N of the utterance.
        width: width W of the window.
        left: frames of context before the emitted ones.
        right: frames of context after them.
        overlap: frames that two neighbours both emit.

    Raises:
        ValueError: `frames` or `width` is not positive, a context or `overlap` is negative, the contexts leave nothing
            to emit, or `overlap` leaves a window no frame of its own.
    """
    if frames < 1:
        raise ValueError(f"an utterance needs at least one frame, not {frames}")
    if width < 1 or left < 0 or right < 0 or left + right >= width:
        raise ValueError(f"a window of {width} frames cannot hold {left} + {right} frames of context and emit any")
    if not 0 <= overlap < width - left - right:
        raise ValueError(f"windows that emit {width - left - right} frames cannot share {overlap} with the one before")
    if frames <= width:
        return [WindowStep(0, frames, 0, frames)]
    steps = []
    emit_start = start = 0
    while start + width < frames:
        emit_stop = start + width - right
        steps.append(WindowStep(start, width, emit_start, emit_stop))
        emit_start = emit_stop - overlap
        start = emit_start - left
    steps.append(WindowStep(frames - width, width, emit_start, frames))
    return steps


def walk_windows(
    run: RunWindow, arrays: Sequence[FloatArray], width: int, left: int, right: int, hop: int
) -> Iterator[tuple[WindowStep, npt.NDArray[Any]]]:
    """Decode window by window, yielding each step with the samples it emits.

    Args:
        run: decodes one window; called with the window of each array, `[..., width]`, in the order of `arrays`.
        arrays: what is cut: arrays with the frames of the utterance along their last axis, all of one length.
        width: width of the window in frames.
        left: frames of context before the emitted ones.
        right: frames of context after them.
        hop: samples per frame.

    Yields:
        The step and its samples `[(emit_stop - emit_start) * hop]`.

    Raises:
        ValueError: the arrays differ in length or have none, the geometry is wrong, or `run` does not return
            `width * hop` samples.
    """
    if hop < 1:
        raise ValueError(f"a frame needs at least one sample, not {hop}")
    lengths = {array.shape[-1] if array.ndim else 0 for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"the arrays to cut must have one common number of frames, not {sorted(lengths)}")
    for step in plan_windows(lengths.pop(), width, left, right):
        samples = np.asarray(run(*(cut_window(array, step.start, step.valid, width) for array in arrays))).reshape(-1)
        if samples.size != width * hop:
            raise ValueError(
                f"the window at frame {step.start} gave {samples.size} samples, expected {width} frames x {hop}"
            )
        yield step, samples[(step.emit_start - step.start) * hop : (step.emit_stop - step.start) * hop]


def decode_windowed(
    run: RunWindow, latent: FloatArray, mask: FloatArray, width: int, left: int, right: int, hop: int
) -> npt.NDArray[Any]:
    """Decode a whole utterance through windows of a fixed width.

    Args:
        run: decodes one window: `run(latent [1, C, width], mask [1, 1, width])`, both float32.
        latent: latent of the utterance, `[1, C, N]`.
        mask: its frame mask, `[1, 1, N]`.
        width: width of the window in frames.
        left: frames of context before the emitted ones.
        right: frames of context after them.
        hop: samples per frame.

    Returns:
        The samples `[N * hop]`, of the type that `run` returns.

    Raises:
        ValueError: as `walk_windows`.
    """
    return np.concatenate([samples for _, samples in walk_windows(run, [latent, mask], width, left, right, hop)])


def cut_window(array: FloatArray, start: int, count: int, width: int) -> FloatArray:
    """The `count` steps of the last axis from `start` on, with zeros on their right up to `width`: `[..., width]`."""
    window = np.zeros((*array.shape[:-1], width), np.float32)
    window[..., :count] = array[..., start : start + count]
    return window
