from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from contracts.contract import Window
from contracts.errors import UserInput
from converters.stages import Array
from converters.vits_windows import (
    AUDIO,
    LATENT,
    MASK,
    Latent,
    UsualWindow,
    decode,
    decode_by_windows,
    window_of,
)

USUAL = UsualWindow(emitted=192, context=32, widest=4096)


@pytest.mark.parametrize(
    ("frames", "context", "wanted"),
    [
        (None, None, (256, 192, 32)),
        (None, 24, (240, 192, 24)),
        (256, 24, (256, 208, 24)),
        (65, None, (65, 1, 32)),
        (1, 0, (1, 1, 0)),
        (4096, None, (4096, 4032, 32)),
    ],
)
def test_window_of_holds_its_context_on_both_sides(
    frames: int | None, context: int | None, wanted: tuple[int, int, int]
) -> None:
    width, emitted, side = wanted
    assert window_of(USUAL, frames, context, 256, 24_000) == Window(width, emitted, side, side, 256, 24_000)


@pytest.mark.parametrize(
    ("frames", "context", "told"),
    [
        (64, None, r"--window 65 or more\.$"),
        (48, 24, r"--window 49 or more\.$"),
        (0, 0, r"--window 1 or more\.$"),
        (None, -1, r"--window 1 or more\.$"),
        (4097, None, r"the widest window that can be checked has 4096 frames"),
    ],
)
def test_window_of_says_what_would_do_when_a_window_is_none(frames: int | None, context: int | None, told: str) -> None:
    with pytest.raises(UserInput, match=told):
        window_of(USUAL, frames, context, 256, None)


def latent(frames: int) -> Latent:
    values = np.arange(2 * frames, dtype=np.float32).reshape(1, 2, frames) + 1
    return Latent(values, np.ones((1, 1, frames), np.float32))


def test_padded_latent_ends_in_zeros_and_so_does_its_mask() -> None:
    padded = latent(7).padded()
    np.testing.assert_array_equal(padded.latent, [[[1, 2, 3, 4, 5, 0, 0], [8, 9, 10, 11, 12, 0, 0]]])
    np.testing.assert_array_equal(padded.mask, [[[1, 1, 1, 1, 1, 0, 0]]])


def test_first_frames_of_a_latent_have_their_mask() -> None:
    first = latent(5).first(2)
    assert first.frames == 2
    np.testing.assert_array_equal(first.latent, [[[1, 2], [6, 7]]])


def test_decode_hands_over_latent_mask_and_what_else_is_given() -> None:
    seen: dict[str, Array] = {}

    def session(feed: Mapping[str, Array]) -> dict[str, Array]:
        seen.update(feed)
        return {AUDIO: np.zeros((1, 1, 1, 6), np.float32)}

    assert decode(session, latent(3), {"g": np.ones(1)}).shape == (6,)
    assert set(seen) == {LATENT, MASK, "g"}


def neighbours(feed: Mapping[str, Array]) -> dict[str, Array]:
    """Two samples a frame, both the sum of the latent's first channel from four frames before to four behind."""
    line = np.asarray(feed[LATENT][0, 0], np.float64)
    summed = np.convolve(line, np.ones(9), mode="same")
    return {AUDIO: np.repeat(summed, 2).astype(np.float32)[None, None]}


@pytest.mark.parametrize(("context", "exact"), [(0, False), (3, False), (4, True), (5, True)])
def test_decode_by_windows_is_the_whole_decode_when_the_context_is_what_a_frame_sees(context: int, exact: bool) -> None:
    rng = np.random.default_rng(0)
    said = Latent(rng.integers(-9, 9, (1, 2, 50)).astype(np.float32), np.ones((1, 1, 50), np.float32))
    whole = decode(neighbours, said)
    pcm = decode_by_windows(neighbours, said, Window(16, 8, 4, 4, 2, None), context)
    assert np.array_equal(pcm, whole) is exact
