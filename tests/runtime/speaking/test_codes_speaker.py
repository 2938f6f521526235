"""Codes that are all there are handed on one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.codes_speaker import CodesSpeaker
from rknn_tts_runtime.speaking.qwen3 import CodesDecoder
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray
from rknn_tts_runtime.speaking.stopwatch import Stopwatch


class Decoder:
    """Notes what it is given, and gives the first codebook's codes as samples, two at a time."""

    codebooks = 2
    notes = ("a stand-in",)

    def __init__(self) -> None:
        self.taken: list[Array] = []
        self.closed = False

    def stream(self, codes: Iterable[Array], stopwatch: Stopwatch) -> Iterator[FloatArray]:
        held: list[float] = []
        for piece in codes:
            self.taken.append(piece)
            held.append(float(piece[0, 0, 0]))
            if len(held) == 2:
                yield np.array(held, np.float32)
                held = []

    def close(self) -> None:
        self.closed = True


def test_speak_reads_no_code_before_it_is_needed() -> None:
    decoder = Decoder()
    speaker = CodesSpeaker(cast(CodesDecoder, decoder), 24000)
    codes = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    pieces = speaker.speak(Asked(codes=codes), Stopwatch())
    np.testing.assert_array_equal(next(pieces), [1, 2])
    assert [piece.tolist() for piece in decoder.taken] == [[[[1], [5]]], [[[2], [6]]]]
    np.testing.assert_array_equal(next(pieces), [3, 4])
    speaker.close()
    assert (decoder.closed, speaker.notes, speaker.sample_rate) == (True, ("a stand-in",), 24000)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked(text="Hello"), "give --codes FILE.npy"),
        (Asked(codes=np.zeros((2, 1), np.int64), speaker=1), "leave --speaker, --voice and --speed out"),
        (Asked(codes=np.zeros((2, 1), np.int64), speed=2.0), "leave --speaker, --voice and --speed out"),
        (Asked(codes=np.zeros((3, 1), np.int64)), r"expected \[2, N\] whole numbers, not \[3, 1\]"),
        (Asked(codes=np.zeros((2, 0), np.int64)), r"not \[2, 0\]"),
        (Asked(codes=np.zeros((1, 2, 1), np.int64)), r"not \[1, 2, 1\]"),
    ],
)
def test_speak_refuses_what_it_cannot_voice(asked: Asked, sentence: str) -> None:
    speaker = CodesSpeaker(cast(CodesDecoder, Decoder()), 24000)
    with pytest.raises(BadInput, match=sentence):
        speaker.speak(asked, Stopwatch())
