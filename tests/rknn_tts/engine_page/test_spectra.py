from __future__ import annotations

import numpy as np
import pytest

from rknn_tts.engine_page.spectra import BANDS, MOST_COLUMNS, loudest_db, spectrogram, stepped, within

RATE = 16000
BIN_HZ = RATE / 512


def test_spectrogram_shows_a_sine_at_its_frequency_and_level() -> None:
    time_s = np.arange(RATE) / RATE
    sine = (0.1 * np.sin(2 * np.pi * 64 * BIN_HZ * time_s)).astype(np.float32)
    found = spectrogram(sine, RATE)
    middle = found.levels_db[:, found.levels_db.shape[1] // 2]
    assert int(np.argmax(middle)) == 32  # two bins a band
    assert float(middle.max()) == pytest.approx(-20.0, abs=0.05)
    assert (found.duration_s, found.highest_hz, len(middle)) == (1.0, 8000.0, BANDS)


def test_spectrogram_is_as_wide_as_is_shown_when_an_utterance_is_long() -> None:
    found = spectrogram(np.random.default_rng(0).normal(0, 0.1, 60 * RATE).astype(np.float32), RATE)
    assert MOST_COLUMNS / 2 < found.levels_db.shape[1] <= MOST_COLUMNS


def test_spectrogram_of_silence_and_of_a_single_sample_is_finite() -> None:
    for samples in (np.zeros(100, np.float32), np.ones(1, np.float32)):
        assert np.isfinite(spectrogram(samples, RATE).levels_db).all()


def test_levels_are_cut_and_stepped() -> None:
    levels = np.asarray([-200.0, -31.2, 0.0], np.float32)
    assert within(levels, -10.0).tolist() == pytest.approx([-90.0, -31.2, -10.0])
    assert stepped(levels, 2.0).tolist() == [-200.0, -32.0, 0.0]


def test_loudest_is_a_whole_step_above_all() -> None:
    sine = np.sin(np.arange(4096) * 2 * np.pi / 16).astype(np.float32)
    assert loudest_db(spectrogram(sine * 0.1, RATE), spectrogram(sine * 0.5, RATE)) == -6.0
