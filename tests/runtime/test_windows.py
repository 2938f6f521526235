"""Window walks: every frame once, real context, padding only where the utterance is shorter than the window."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rknn_tts_runtime import WindowStep, decode_windowed, plan_windows, walk_windows

Floats = NDArray[np.float32]
HOP = 4


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        # Width 10, 3 + 4 + 3.
        (1, [(0, 1, 0, 1)]),
        (9, [(0, 9, 0, 9)]),
        (10, [(0, 10, 0, 10)]),
        (11, [(0, 10, 0, 7), (1, 10, 7, 11)]),
        (14, [(0, 10, 0, 7), (4, 10, 7, 14)]),
        (15, [(0, 10, 0, 7), (4, 10, 7, 11), (5, 10, 11, 15)]),
        (18, [(0, 10, 0, 7), (4, 10, 7, 11), (8, 10, 11, 18)]),
    ],
)
def test_plan_windows_matches_hand_made_plan_when_given_length(
    frames: int, expected: list[tuple[int, int, int, int]]
) -> None:
    assert plan_windows(frames, width=10, left=3, right=3) == [WindowStep(*step) for step in expected]


@pytest.mark.parametrize(
    ("frames", "overlap", "expected"),
    [
        # Width 10, 3 + 4 + 3.
        (10, 1, [(0, 10, 0, 10)]),
        (13, 1, [(0, 10, 0, 7), (3, 10, 6, 13)]),
        (14, 1, [(0, 10, 0, 7), (3, 10, 6, 10), (4, 10, 9, 14)]),
        (12, 3, [(0, 10, 0, 7), (1, 10, 4, 8), (2, 10, 5, 12)]),
    ],
)
def test_plan_windows_matches_hand_made_plan_when_neighbours_overlap(
    frames: int, overlap: int, expected: list[tuple[int, int, int, int]]
) -> None:
    assert plan_windows(frames, 10, 3, 3, overlap) == [WindowStep(*step) for step in expected]


geometries = st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40))


@given(frames=st.integers(1, 700), geometry=geometries)
def test_plan_windows_emits_every_frame_once_with_its_context_when_geometry_is_valid(
    frames: int, geometry: tuple[int, int, int]
) -> None:
    left, emitted, right = geometry
    width = left + emitted + right
    steps = plan_windows(frames, width, left, right)

    assert [frame for step in steps for frame in range(step.emit_start, step.emit_stop)] == list(range(frames))
    assert steps[0].start == 0
    if frames >= width:
        assert steps[-1].start + width == frames
    for step in steps:
        assert step.valid == min(width, frames)
        assert step.start + step.valid <= frames
        assert step.emit_start == 0 or step.emit_start - step.start >= left
        assert step.emit_stop == frames or step.start + width - step.emit_stop >= right
    for step in steps[1:-1]:
        assert step.emit_stop - step.emit_start == emitted


@given(frames=st.integers(1, 700), geometry=geometries, data=st.data())
def test_plan_windows_shares_the_overlap_with_its_context_when_neighbours_overlap(
    frames: int, geometry: tuple[int, int, int], data: st.DataObject
) -> None:
    left, emitted, right = geometry
    width = left + emitted + right
    overlap = data.draw(st.integers(0, emitted - 1))
    steps = plan_windows(frames, width, left, right, overlap)

    assert (steps[0].emit_start, steps[-1].emit_stop) == (0, frames)
    for before, after in pairwise(steps):
        assert after.emit_start == before.emit_stop - overlap
        assert after.emit_stop - after.emit_start > overlap
    for step in steps:
        assert 0 <= step.start <= max(0, frames - width)
        assert step.emit_start == 0 or step.emit_start - step.start >= left
        assert step.emit_stop == frames or step.start + width - step.emit_stop >= right


@pytest.mark.parametrize("overlap", [-1, 4])
def test_plan_windows_raises_when_overlap_leaves_a_window_nothing_of_its_own(overlap: int) -> None:
    with pytest.raises(ValueError, match=f"windows that emit 4 frames cannot share {overlap} "):
        plan_windows(5, 10, 3, 3, overlap)


@pytest.mark.parametrize(
    ("frames", "width", "left", "right", "says"),
    [
        (0, 10, 3, 3, "at least one frame, not 0"),
        (-5, 10, 3, 3, "at least one frame, not -5"),
        (20, 6, 3, 3, "window of 6 frames cannot hold 3 \\+ 3"),
        (20, 10, -1, 3, "cannot hold -1 \\+ 3"),
        (20, 10, 3, -1, "cannot hold 3 \\+ -1"),
        (20, 0, 0, 0, "window of 0 frames"),
    ],
)
def test_plan_windows_raises_when_geometry_is_impossible(
    frames: int, width: int, left: int, right: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        plan_windows(frames, width, left, right)


def local_filter(latent: Floats, mask: Floats) -> Floats:
    """Each frame's samples from itself and three neighbours on both sides, zeros beyond: context of three suffices."""
    padded = np.pad((latent * mask)[0, 0], 3)
    filtered = sum(np.roll(padded, shift)[3:-3] * (1 + shift / 10) for shift in range(-3, 4))
    return np.repeat(np.asarray(filtered, np.float32), HOP)[None, None]


def utterance(frames: int) -> tuple[Floats, Floats]:
    latent = np.random.default_rng(frames).standard_normal((1, 1, frames)).astype(np.float32)
    return latent, np.ones((1, 1, frames), np.float32)


@pytest.mark.parametrize("frames", [1, 5, 9, 10, 11, 13, 14, 40, 41])
def test_decode_windowed_equals_whole_decode_when_context_suffices(frames: int) -> None:
    latent, mask = utterance(frames)
    samples = decode_windowed(local_filter, latent, mask, 10, 3, 3, HOP)
    np.testing.assert_array_equal(samples, local_filter(latent, mask).reshape(-1))


def test_decode_windowed_pads_right_with_zero_latent_and_mask_when_utterance_is_short() -> None:
    seen: list[tuple[Floats, Floats]] = []

    def run(latent: Floats, mask: Floats) -> Floats:
        seen.append((latent, mask))
        return np.zeros(6 * HOP, np.float32)

    latent, mask = np.full((1, 2, 4), 7, np.float32), np.ones((1, 1, 4), np.float32)
    assert decode_windowed(run, latent, mask, 6, 1, 1, HOP).shape == (4 * HOP,)
    ((latent_window, mask_window),) = seen
    np.testing.assert_array_equal(latent_window, np.array([[[7, 7, 7, 7, 0, 0]] * 2], np.float32))
    np.testing.assert_array_equal(mask_window, np.array([[[1, 1, 1, 1, 0, 0]]], np.float32))
    assert latent_window.dtype == mask_window.dtype == np.float32


def test_decode_windowed_never_pads_when_utterance_fills_a_window() -> None:
    latent, mask = utterance(33)

    def run(latent: Floats, mask: Floats) -> Floats:
        assert mask.min() == 1
        return np.zeros(10 * HOP, np.float32)

    decode_windowed(run, latent, mask, 10, 3, 3, HOP)


def test_walk_windows_cuts_all_arrays_at_the_same_frames_when_given_three() -> None:
    ramp = np.arange(25, dtype=np.float32)

    def run(first: Floats, second: Floats, third: Floats) -> Floats:
        np.testing.assert_array_equal(first[0] * 2, second[0, 0])
        np.testing.assert_array_equal(first, third)
        return first

    walked = list(walk_windows(run, [ramp[None], 2 * ramp[None, None], ramp[None]], 10, 2, 2, hop=1))
    np.testing.assert_array_equal(np.concatenate([samples for _, samples in walked]), ramp)


def test_walk_windows_raises_when_arrays_differ_in_length() -> None:
    with pytest.raises(ValueError, match="one common number of frames, not \\[4, 5\\]"):
        decode_windowed(local_filter, utterance(5)[0], utterance(4)[1], 10, 3, 3, HOP)


def test_walk_windows_raises_when_there_is_nothing_to_cut() -> None:
    with pytest.raises(ValueError, match="one common number of frames"):
        list(walk_windows(local_filter, [], 10, 3, 3, HOP))


def test_walk_windows_raises_when_run_returns_another_number_of_samples() -> None:
    latent, mask = utterance(12)
    with pytest.raises(ValueError, match="window at frame 0 gave 39 samples, expected 10 frames x 4"):
        decode_windowed(lambda latent, mask: np.zeros(39, np.float32), latent, mask, 10, 3, 3, HOP)


def test_walk_windows_raises_when_hop_is_not_positive() -> None:
    latent, mask = utterance(12)
    with pytest.raises(ValueError, match="at least one sample, not 0"):
        decode_windowed(local_filter, latent, mask, 10, 3, 3, 0)


def test_runtime_imports_numpy_and_nothing_else_of_the_project(pytestconfig: pytest.Config) -> None:
    program = (
        "import sys, rknn_tts_runtime; "
        "print(sorted({name.split('.')[0] for name in sys.modules} "
        "& {'contracts', 'gates', 'logs', 'onnx', 'onnxruntime', 'onnx_ir', 'torch', 'surgery'}))"
    )
    paths = {"PYTHONPATH": str(pytestconfig.rootpath / "runtime")}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=paths, check=True)
    assert result.stdout.strip() == "[]"
