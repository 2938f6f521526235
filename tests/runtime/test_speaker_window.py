from __future__ import annotations

import numpy as np
import pytest
from rknn_tts_runtime import speaker_window

FEATURES = np.array([[1.0, 10.0], [3.0, 10.0], [8.0, 40.0]], np.float32)


def test_longer_speech_is_cropped_before_its_mean_is_taken() -> None:
    got = speaker_window(FEATURES, 2)
    assert got.shape == (1, 1, 2, 2)
    assert got.dtype == np.float32
    assert got[0, 0].tolist() == [[-1.0, 1.0], [0.0, 0.0]]


def test_shorter_speech_is_said_again_from_its_start() -> None:
    got = speaker_window(FEATURES, 7)[0, 0]
    row = [1.0, 3.0, 8.0, 1.0, 3.0, 8.0, 1.0]
    np.testing.assert_allclose(got[0], np.array(row) - np.mean(row), rtol=1e-6)
    np.testing.assert_allclose(got.mean(axis=1), 0, atol=1e-6)


@pytest.mark.parametrize(
    ("features", "frames"),
    [(np.zeros((0, 80)), 200), (np.zeros((5, 0)), 200), (np.zeros(80), 200), (np.zeros((5, 80)), 0)],
)
def test_what_is_no_speech_is_refused(features: np.ndarray[tuple[int, ...], np.dtype[np.float64]], frames: int) -> None:
    with pytest.raises(ValueError, match="are expected"):
        speaker_window(features, frames)
