"""The walk over a spectrogram generator: real context, one closing column, seams overwritten or cross-faded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime import frame_masks, join_columns, walk_spectrogram, walk_spectrogram_windows
from rknn_tts_runtime.spectrogram_windows import stream_columns

Floats = NDArray[np.float32]
RATE = 4
WIDTH, LEFT, RIGHT = 10, 3, 3


def utterance(frames: int) -> tuple[Floats, Floats]:
    """x [1, 2, N] and har [1, 2, RATE N + 1]."""
    draw = np.random.default_rng(frames)
    x = draw.standard_normal((1, 2, frames)).astype(np.float32)
    return x, draw.standard_normal((1, 2, RATE * frames + 1)).astype(np.float32)


def generator(x: Floats, har: Floats, valid: int) -> Floats:
    """As Kokoro's ends: x upsampled, reflected by one column on the left, har added; then a filter over nine columns.

    Its context is two frames and a column, and it masks what lies behind the valid frames.
    """
    upsampled = np.repeat(x, RATE, axis=-1)
    columns = np.concatenate([upsampled[..., 1:2], upsampled], axis=-1) + har
    columns[..., RATE * valid + 1 :] = 0
    padded = np.pad(columns, ((0, 0), (0, 0), (4, 4)))
    return sum((shift + 1) * padded[..., shift : shift + columns.shape[-1]] for shift in range(9))  # type: ignore[return-value]  # the sum of nine arrays, never the 0 of none


def walked(x: Floats, har: Floats, overlap: int = 0) -> NDArray[Any]:
    return walk_spectrogram(generator, x, har, WIDTH, LEFT, RIGHT, RATE, overlap)


@pytest.mark.parametrize("frames", [1, 5, 9, 10, 11, 13, 14, 40, 41])
def test_walk_spectrogram_equals_whole_computation_when_context_suffices(frames: int) -> None:
    x, har = utterance(frames)
    whole = generator(x, har, frames)
    assert whole.shape == (1, 2, RATE * frames + 1)
    np.testing.assert_array_equal(walked(x, har), whole)


@pytest.mark.parametrize("overlap", [1, 2, 3])
@pytest.mark.parametrize("frames", [9, 11, 14, 41])
def test_walk_spectrogram_equals_whole_computation_when_equal_windows_are_cross_faded(
    frames: int, overlap: int
) -> None:
    x, har = utterance(frames)
    np.testing.assert_allclose(walked(x, har, overlap), generator(x, har, frames), atol=1e-4)


def test_walk_spectrogram_cuts_both_arrays_at_the_same_frames_when_walking() -> None:
    x = np.arange(15, dtype=np.float32)[None, None]
    har = np.arange(15 * RATE + 1, dtype=np.float32)[None, None] / np.float32(RATE)
    starts = []

    def run(x_window: Floats, har_window: Floats, valid: int) -> Floats:
        starts.append(float(x_window[0, 0, 0]))
        assert valid == WIDTH
        assert x_window.dtype == har_window.dtype == np.float32
        np.testing.assert_array_equal(har_window[..., :-1:RATE], x_window)
        assert har_window[0, 0, -1] == x_window[0, 0, -1] + 1
        return har_window

    np.testing.assert_array_equal(walk_spectrogram(run, x, har, WIDTH, LEFT, RIGHT, RATE), har)
    assert starts == [0, 4, 5]


def test_walk_spectrogram_pads_right_with_zeros_when_utterance_is_short() -> None:
    seen: list[tuple[Floats, Floats, int]] = []

    def run(x: Floats, har: Floats, valid: int) -> Floats:
        seen.append((x, har, valid))
        return np.arange(6 * RATE + 1, dtype=np.float32)[None, None]

    x, har = np.full((1, 2, 4), 7, np.float32), np.full((1, 1, 4 * RATE + 1), 8, np.float32)
    columns = walk_spectrogram(run, x, har, 6, 1, 1, RATE)
    np.testing.assert_array_equal(columns, np.arange(4 * RATE + 1, dtype=np.float32)[None, None])
    ((x_window, har_window, valid),) = seen
    assert valid == 4
    np.testing.assert_array_equal(x_window, np.array([[[7, 7, 7, 7, 0, 0]] * 2], np.float32))
    np.testing.assert_array_equal(har_window, np.array([[[8] * 17 + [0] * 8]], np.float32))


def numbered_windows(frames: int, overlap: int) -> list[float]:
    """Columns of windows that give their own number everywhere; two columns a frame, width 6 = 1 + 4 + 1."""
    numbers = iter(range(1, 100))

    def run(x: Floats, har: Floats, valid: int) -> Floats:
        return np.full((1, 1, 13), next(numbers), np.float32)

    x, har = np.zeros((1, 1, frames), np.float32), np.zeros((1, 1, 2 * frames + 1), np.float32)
    return list(walk_spectrogram(run, x, har, 6, 1, 1, 2, overlap)[0, 0])


def test_walk_spectrogram_overwrites_the_seam_column_when_windows_meet() -> None:
    # Frames 0 to 4, 5 to 8, 9 to 10: two columns each, and the closing one.
    np.testing.assert_array_equal(numbered_windows(11, overlap=0), [1] * 10 + [2] * 8 + [3] * 5)


def test_walk_spectrogram_cross_fades_by_a_raised_cosine_when_windows_overlap() -> None:
    # Frames 0 to 4 and 3 to 6 share 3 and 4: four columns at (1 - cos(pi i / 4)) / 2 = 0, 0.146, 0.5, 0.854.
    expected = [1] * 6 + [1, 1.1464466, 1.5, 1.8535534] + [2] * 5
    np.testing.assert_allclose(numbered_windows(7, overlap=2), expected, rtol=1e-6)


def test_join_columns_fades_into_what_was_already_faded_when_three_pieces_share_a_column() -> None:
    # At columns 0 to 3, 1 to 4 and 2 to 5, faded at 0 and 1/2: the first two give 0 0 4 8 8, and with the third,
    # column 2 stays 4 and column 3 is halfway from 8 to 16.
    pieces = [np.full(4, value, np.float32) for value in (0, 8, 16)]
    joined = np.concatenate(list(join_columns(pieces, overlap_columns=2)))
    np.testing.assert_allclose(joined, [0, 0, 4, 12, 16, 16], rtol=1e-6)


def test_join_columns_leaves_its_pieces_as_they_were_when_it_cross_fades() -> None:
    pieces = [np.zeros(6, np.float32), np.ones(6, np.float32)]
    list(join_columns(pieces, overlap_columns=3))
    np.testing.assert_array_equal(pieces, [[0] * 6, [1] * 6])


def test_join_columns_yields_settled_columns_before_the_next_piece_is_asked_for() -> None:
    asked = []

    def pieces() -> Any:
        for number in (1, 2):
            asked.append(number)
            yield np.full(5, number, np.float32)

    joined = join_columns(pieces())
    np.testing.assert_array_equal(next(joined), [1, 1, 1, 1])
    assert asked == [1]
    assert [list(part) for part in joined] == [[2, 2, 2, 2], [2]]


def test_walk_spectrogram_windows_yields_the_columns_of_emitted_frames_with_both_seams() -> None:
    x, har = utterance(14)
    whole = generator(x, har, 14)
    steps = []
    for step, columns in walk_spectrogram_windows(generator, x, har, WIDTH, LEFT, RIGHT, RATE):
        steps.append((step.emit_start, step.emit_stop))
        np.testing.assert_array_equal(columns, whole[..., RATE * step.emit_start : RATE * step.emit_stop + 1])
    assert steps == [(0, 7), (7, 14)]


def test_walk_spectrogram_raises_when_har_is_not_as_long_as_x() -> None:
    x, har = utterance(12)
    with pytest.raises(ValueError, match="12 frames need har of 4 x 12 \\+ 1 = 49 columns, not 48"):
        walked(x, har[..., :-1])


@pytest.mark.parametrize("shape", [(1, 2, 40), (2, 2, 41), (2, 41)])
def test_walk_spectrogram_raises_when_run_returns_another_shape(shape: tuple[int, ...]) -> None:
    x, har = utterance(12)
    with pytest.raises(ValueError, match=r"window at frame 0 gave .* expected \[1, C, 41\]: 10 frames x 4 \+ 1"):
        walk_spectrogram(lambda x, har, valid: np.zeros(shape, np.float32), x, har, WIDTH, LEFT, RIGHT, RATE)


def test_walk_spectrogram_raises_when_a_frame_has_no_columns() -> None:
    x, har = utterance(12)
    with pytest.raises(ValueError, match="at least one column, not 0"):
        walk_spectrogram(generator, x, har, WIDTH, LEFT, RIGHT, 0)


def test_walk_spectrogram_raises_when_overlap_is_all_that_a_window_emits() -> None:
    x, har = utterance(12)
    with pytest.raises(ValueError, match="emit 4 frames cannot share 4"):
        walked(x, har, overlap=4)


def test_frame_masks_counts_kokoros_columns_when_a_window_is_padded() -> None:
    coarse, fine = frame_masks(valid=3, width=5)
    np.testing.assert_array_equal(coarse, np.array([[[1] * 30 + [0] * 20]], np.float32))
    np.testing.assert_array_equal(fine, np.array([[[1] * 181 + [0] * 120]], np.float32))
    assert coarse.dtype == fine.dtype == np.float32


def test_frame_masks_is_all_ones_when_the_window_is_full() -> None:
    masks = frame_masks(5, 5, rates=(2, 6, 12), closing=(0, 0, 1))
    assert [mask.shape for mask in masks] == [(1, 1, 10), (1, 1, 30), (1, 1, 61)]
    assert all(mask.min() == 1 for mask in masks)


@pytest.mark.parametrize("valid", [0, 6])
def test_frame_masks_raises_when_the_window_cannot_hold_the_frames(valid: int) -> None:
    with pytest.raises(ValueError, match=f"window of 5 frames cannot hold {valid} valid"):
        frame_masks(valid, 5)


def test_frame_masks_raises_when_a_rate_lacks_its_closing_columns() -> None:
    with pytest.raises(ValueError, match="2 rates need as many closing columns, not 1"):
        frame_masks(1, 5, rates=(2, 4), closing=(1,))


@pytest.mark.parametrize("overlap", [0, 1, 3])
@pytest.mark.parametrize("frames", [1, 10, 11, 14, 41])
def test_stream_columns_gives_the_whole_computation_in_pieces(frames: int, overlap: int) -> None:
    x, har = utterance(frames)
    pieces = list(stream_columns(generator, x, har, WIDTH, LEFT, RIGHT, RATE, overlap))
    np.testing.assert_allclose(np.concatenate(pieces, axis=-1), generator(x, har, frames), atol=1e-4)
    np.testing.assert_array_equal(np.concatenate(pieces, axis=-1), walked(x, har, overlap))


def test_stream_columns_yields_all_but_what_the_next_window_changes_before_it_runs() -> None:
    x, har = utterance(41)
    runs: list[int] = []

    def run(x_window: Floats, har_window: Floats, valid: int) -> Floats:
        runs.append(valid)
        return generator(x_window, har_window, valid)

    pieces = stream_columns(run, x, har, WIDTH, LEFT, RIGHT, RATE, overlap=2)
    # The first window emits its frames 0 to 7; the two that the next one also emits wait, and the column on the seam.
    assert next(pieces).shape == (1, 2, RATE * (WIDTH - RIGHT - 2))
    assert len(runs) == 1
