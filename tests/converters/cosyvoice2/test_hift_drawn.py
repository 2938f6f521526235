"""What is drawn for the vocoder's gates is like speech where that matters."""

from __future__ import annotations

import numpy as np

from converters.cosyvoice2.hift_drawn import LOUD, QUIET, drawn_mel, drawn_noise, drawn_pitch


def test_mel_is_smooth_in_both_directions_and_floored() -> None:
    mel = drawn_mel(80, 200, 0)
    assert mel.shape == (1, 80, 200)
    assert np.log(1e-5) - 1e-4 <= mel.min()
    assert mel.max() <= 2
    assert -6 < mel.mean() < -4
    assert np.abs(np.diff(mel, axis=2)).mean() < mel.std() / 2
    assert np.abs(np.diff(mel, axis=1)).mean() < mel.std() / 2


def test_levels_and_seeds_are_different_mels() -> None:
    quiet, loud, other = drawn_mel(80, 50, 0, QUIET), drawn_mel(80, 50, 0, LOUD), drawn_mel(80, 50, 1, LOUD)
    assert quiet.mean() < -8 < -3 < loud.mean()
    assert not np.array_equal(loud, other)


def test_pitch_is_of_speech_with_gaps() -> None:
    pitch = drawn_pitch(100, 0)
    voiced = pitch[pitch > 0]
    assert pitch.shape == (1, 100)
    assert voiced.min() >= 90
    assert voiced.max() <= 320
    assert 20 < (pitch == 0).sum() < 35


def test_noise_is_standard_normal_and_the_seeds() -> None:
    noise = drawn_noise(10, 0)
    assert noise.shape == (1, 4800, 9)
    assert abs(noise.std() - 1) < 0.02
    np.testing.assert_array_equal(noise, drawn_noise(10, 0))
