from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from contracts.contract import Window
from converters.kokoro import evidence
from converters.kokoro.geometry import Geometry
from converters.kokoro.utterances import FloatArray, Utterance
from surgery.sine_forms import Form
from tests.kokoro_writer.speaking import SPEAKING

SIZES = SPEAKING.istftnet
RATE = 6
"""Columns a frame of the small one; 3 behind its first upsampling."""


def geometry(frames: int = 10, context: int = 2, inner: int | None = None, padding: int = 1) -> Geometry:
    window = Window(frames, frames - 2 * context, context, context, 30, 24000)
    return Geometry(window, inner, padding, 9, "native", Form.TRIANGLE)


def counted(frames: int) -> Utterance:
    x, har = (np.arange(1, count + 1, dtype=np.float32)[None, None] for count in (frames, RATE * frames + 1))
    return Utterance("counted", x, har, np.full((1, 4), 7, np.float32))


def ones(count: int, of: int) -> list[float]:
    return [1.0] * count + [0.0] * (of - count)


def test_padded_feed_has_zeros_behind_and_masks_of_what_is_there() -> None:
    feed = evidence.padded_feed_of(counted(2), 4, SIZES)
    assert list(feed) == ["x", "har", "style", "mask", "mask_fine"]
    assert feed["x"][0, 0].tolist() == [1, 2, 0, 0]
    assert feed["har"][0, 0].tolist() == [*range(1, 14), *[0] * 12]
    assert feed["mask"][0, 0].tolist() == ones(6, of=12)
    assert feed["mask_fine"][0, 0].tolist() == ones(13, of=25)
    assert feed["style"].tolist() == [[7, 7, 7, 7]]


def test_padded_feed_of_a_whole_window_has_no_padding() -> None:
    feed = evidence.padded_feed_of(counted(4), 4, SIZES)
    assert all(np.all(feed[name] == 1) for name in ("mask", "mask_fine"))
    np.testing.assert_array_equal(feed["har"], counted(4).har)


@pytest.mark.parametrize("frames", [10, 11, 16, 17, 30])
def test_windows_cover_the_utterance_and_hold_no_padding(frames: int) -> None:
    windows = evidence.windows_of(counted(frames), geometry())
    starts = [int(window.x[0, 0, 0]) - 1 for window in windows]
    assert (starts[0], starts[-1] + 10) == (0, frames)
    assert all(after - before <= 6 for before, after in pairwise(starts))
    for start, window in zip(starts, windows, strict=True):
        assert window.x[0, 0].tolist() == list(range(start + 1, start + 11))
        assert window.har[0, 0].tolist() == list(range(RATE * start + 1, RATE * (start + 10) + 2))
    assert len({window.name for window in windows}) == len(windows)


def test_decoded_by_windows_is_the_whole_when_a_window_gives_its_own_columns() -> None:
    whole = counted(23)
    np.testing.assert_array_equal(evidence.decoded_by_windows(lambda part: part.har, whole, geometry()), whole.har)


def test_decoded_by_windows_takes_no_column_of_the_context() -> None:
    def decode(part: Utterance) -> FloatArray:
        made = part.har.copy()
        if part.x[0, 0, 0] != 1:
            made[..., : 2 * RATE] = np.nan
        if part.x[0, 0, -1] != 23:
            made[..., -2 * RATE :] = np.nan
        return made

    np.testing.assert_array_equal(evidence.decoded_by_windows(decode, counted(23), geometry()), counted(23).har)


def test_inside_are_windows_of_their_own_context() -> None:
    made = evidence.inside(geometry(frames=40, inner=10, padding=3))
    assert made is not None
    assert (made.window.frames, made.window.emitted, made.window.left, made.window.right) == (10, 4, 3, 3)
    assert (made.window.hop, made.inner) == (30, None)
    assert evidence.inside(geometry()) is None


def test_padded_equality_compares_each_length_without_its_padding() -> None:
    feeds = [(part, evidence.padded_feed_of(part, 4, SIZES)) for part in (counted(4), counted(2))]
    made = evidence.padded_equality(lambda part: part.har, lambda feed: np.asarray(feed["har"], np.float32), feeds)
    assert (made.gate, made.minimum_db) == ("fp64.padded", 130.0)
    assert [array.shape[-1] for array in made.measured.values()] == [25, 13]
    for name, array in made.reference.items():
        np.testing.assert_array_equal(made.measured[name], array)


def test_window_equality_names_every_window() -> None:
    windows = evidence.windows_of(counted(23), geometry())
    made = evidence.window_equality(lambda part: part.har, lambda part: part.har + 1, windows)
    assert (made.gate, made.minimum_db, len(made.reference)) == ("fp64.window", 130.0, len(windows))
    assert made.reference.keys() == made.measured.keys()


@pytest.mark.parametrize(("form", "owed"), [(Form.TRIANGLE, 85.0), (Form.FLOOR, 85.0), (Form.EXACT, 120.0)])
def test_expectation_owes_what_its_sines_can_give(form: Form, owed: float) -> None:
    part = counted(3)
    made = evidence.expectation(lambda utterance: utterance.har, "some", [(part, evidence.feed_of(part))], form)
    assert (made.gate, made.minimum_db) == ("fp32.finished_some", owed)
    ((feed, outputs),) = made.runs
    assert list(feed) == ["x", "har", "style"]
    assert list(outputs) == ["spec_phase"]


@pytest.mark.parametrize(("error", "db"), [(0.0, float("inf")), (0.1, 20.0), (1.0, 0.0)])
def test_figures_are_signal_to_noise(error: float, db: float) -> None:
    whole = np.ones((1, 2, 3), np.float32)
    stitched = evidence.stitched(whole, whole * np.float32(1 + error))
    narrow = replace(geometry(), window=Window(10, 6, 2, 2, 30, 24000))
    figure = evidence.context_figure(whole, whole * np.float32(1 + error), narrow)
    assert stitched.measured == figure.measured == pytest.approx(db, abs=0.01)
    assert (stitched.name, figure.name) == ("windows.stitched", "fp64.context")
    assert "a context of 2 frames is less than the 9 that a frame sees" in figure.reason
