"""The loudness and the cap of a full-length decode, against samples of the inverse transform and numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime import istft, join_columns, walk_spectrogram_windows
from rknn_tts_runtime.spectrogram_gain import correct_windows, corrected

Floats = NDArray[np.float32]
BINS = 11


def decode_of(columns: int) -> Floats:
    """Columns whose magnitudes fall towards the highest bins, as speech's do."""
    draw = np.random.default_rng(columns)
    raw = draw.normal(0, 0.5, (1, 2 * BINS, columns)).astype(np.float32)
    raw[:, :BINS] -= np.linspace(0, 6, BINS, dtype=np.float32)[None, :, None]
    return raw


def rms(samples: Floats) -> float:
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))


def test_a_window_that_is_only_louder_becomes_the_decode() -> None:
    decode = decode_of(41)
    louder = decode.copy()
    louder[:, :BINS] += np.float32(np.log(1.25))
    np.testing.assert_allclose(corrected(louder, decode), decode, atol=1e-6)


def test_a_windows_samples_have_the_decodes_loudness() -> None:
    decode = decode_of(601)
    engine = decode_of(602)[..., :601]  # another signal, twice as loud, with nothing to cap
    engine[:, :BINS] += np.float32(np.log(2))
    engine[:, 6:BINS] -= 6
    assert rms(istft(engine)) > 1.8 * rms(istft(decode))
    assert rms(istft(corrected(engine, decode))) == pytest.approx(rms(istft(decode)), rel=1e-5)


def test_the_top_five_magnitudes_are_at_most_the_decodes() -> None:
    decode = decode_of(41)
    click = decode.copy()
    click[0, 6:BINS, 20] += np.float32(np.log(14.7))  # what the reference's board gave in its worst column
    click[0, 5, 20] += np.float32(0.25)  # a row below the five keeps what it has
    made = corrected(click, decode)
    assert np.all(made[0, 6:BINS] <= decode[0, 6:BINS])
    np.testing.assert_array_equal(made[0, 6:BINS, 20], decode[0, 6:BINS, 20])
    assert made[0, 5, 20] > decode[0, 5, 20] + 0.2


def test_magnitudes_below_the_decodes_stay() -> None:
    # Bins 4 and 8 alone turn whole circles from column to column: two cosines, and a power that goes by m4^2 + m8^2.
    decode = np.full((1, 2 * BINS, 41), -200, np.float32)
    decode[:, BINS:] = 0
    decode[:, [4, 8]] = 0
    engine = decode.copy()
    engine[:, 8] = -4.0
    expected = -4.0 + np.log(2 / (1 + np.exp(-8.0))) / 2
    assert corrected(engine, decode)[0, 8, 20] == pytest.approx(
        expected, abs=1e-3
    )  # but for the ends, where one window has no other


def test_phases_and_what_is_given_stay_as_they_are() -> None:
    decode, engine = decode_of(41), decode_of(42)[..., :41]
    given = engine.copy()
    np.testing.assert_array_equal(corrected(engine, decode)[:, BINS:], given[:, BINS:])
    np.testing.assert_array_equal(engine, given)


@pytest.mark.parametrize("level", [-1000.0, -np.inf])
def test_silence_stays_silence(level: float) -> None:
    decode = decode_of(5)
    silent = decode.copy()
    silent[:, :BINS] = level
    np.testing.assert_array_equal(corrected(silent, decode), silent)


@pytest.mark.parametrize("level", [60000.0, np.inf])
def test_a_power_beyond_numbers_is_capped_and_shifts_nothing(level: float) -> None:
    decode = decode_of(5)
    wild = decode.copy()
    wild[0, 9, 2] = level
    made = corrected(wild, decode)
    np.testing.assert_array_equal(made, decode)


def test_every_window_of_a_walk_is_corrected_by_its_own_columns() -> None:
    # 25 frames of four columns in windows of 10; window n is n + 1 times as loud as the decode.
    decode = decode_of(101)
    x = np.arange(25, dtype=np.float32)[None, None]
    har = np.broadcast_to(decode, decode.shape)
    runs: list[int] = []

    def run(x_window: Floats, har_window: Floats, valid: int) -> Floats:
        runs.append(valid)
        louder = har_window.copy()
        louder[:, :BINS] += np.float32(np.log(len(runs)))
        return louder

    walked = correct_windows(walk_spectrogram_windows(run, x, har, 10, 2, 2, 4), decode, 4)
    joined = np.concatenate(list(join_columns(columns for _, columns in walked)), axis=-1)
    assert len(runs) > 2
    np.testing.assert_allclose(joined, decode, atol=1e-5)


def test_a_decode_of_other_frames_is_refused() -> None:
    with pytest.raises(ValueError, match=r"columns \[1, 22, 5\] need a full-length decode .* not \[1, 22, 4\]"):
        corrected(decode_of(5), decode_of(4))
