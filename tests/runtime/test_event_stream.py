"""Events of a stream against the walk over the whole, and against a decoder that is written down."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime import walk_events
from rknn_tts_runtime.event_stream import stream_events

Floats = NDArray[np.float32]
CONTEXT, EMITTED, SIZE, NUMEL, RATE = 3, 2, 6, 4, 2


def heard(columns: Floats, cache: Floats) -> tuple[Floats, Floats]:
    """Two samples a code: the sum of all codes that the step has heard up to it, and the code itself."""
    assert not cache.any()
    return np.stack([np.cumsum(columns[0, 0]), columns[0, 0]], axis=-1), cache + 1


def stream(codes: int, cuts: list[int]) -> list[Floats]:
    latent = np.arange(1, codes + 1, dtype=np.float32)[None, None]
    pieces = (latent[..., start:stop] for start, stop in pairwise([0, *cuts, codes]))
    return list(stream_events(pieces, heard, CONTEXT, EMITTED, SIZE, NUMEL, RATE))


@pytest.mark.parametrize("codes", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("cuts", [[], [1], [1, 1, 1]], ids=str)
def test_events_of_a_stream_are_those_of_the_whole(codes: int, cuts: list[int]) -> None:
    latent = np.arange(1, codes + 1, dtype=np.float32)[None, None]
    expected = walk_events(latent, heard, CONTEXT, EMITTED, SIZE, NUMEL, RATE)
    np.testing.assert_array_equal(np.concatenate(stream(codes, cuts)), expected)


def test_each_event_hears_its_context_and_no_more() -> None:
    # Codes 1 to 7. Events: 1 2 | 3 4 behind 1 2 | 5 6 behind 2 3 4 | 7 behind 4 5 6.
    owed = [[1, 1, 3, 2], [6, 3, 10, 4], [14, 5, 20, 6], [22, 7]]
    assert [piece.tolist() for piece in stream(7, [])] == owed
    assert [piece.tolist() for piece in stream(7, [1, 2, 3, 4, 5, 6])] == owed


def test_no_more_codes_are_read_than_the_next_samples_need() -> None:
    read: list[int] = []

    def arriving() -> Iterator[Floats]:
        while True:
            read.append(1)
            yield np.ones((1, 1, 1), np.float32)

    pieces = stream_events(arriving(), heard, CONTEXT, EMITTED, SIZE, NUMEL, RATE)
    next(pieces)
    assert len(read) == EMITTED
    next(pieces)
    assert len(read) == 2 * EMITTED


def test_a_stream_without_codes_has_no_samples() -> None:
    assert stream(0, []) == []
    assert list(stream_events([], heard, CONTEXT, EMITTED, SIZE, NUMEL, RATE)) == []


def test_an_event_larger_than_its_step_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a step of 4 codes cannot hold an event of 3\+2"):
        list(stream_events([], heard, 3, 2, 4, NUMEL, RATE))
