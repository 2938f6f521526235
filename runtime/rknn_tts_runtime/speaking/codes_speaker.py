"""Qwen3's speech decoder as a voice: codes that are all there, handed on as a language model would, one at a time.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Iterator

from rknn_tts_runtime.backends.engine import Array, Backend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.qwen3 import CodesDecoder, open_qwen3
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray, Speaker
from rknn_tts_runtime.speaking.stopwatch import Stopwatch


class CodesSpeaker:
    """A decoder of codes whose engines are open (`speaking.speaker.Speaker`). See `open_codes_speaker`.

    Attributes:
        sample_rate: samples a second.
        notes: what a person should know of what is heard.
    """

    def __init__(self, decoder: CodesDecoder, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self.notes = decoder.notes
        self._decoder = decoder

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """The audio of `asked.codes`, step by step; see `speaking.speaker.Speaker.speak`."""
        if asked.codes is None:
            raise BadInput("This decoder voices the codes of a language model, and no words: give --codes FILE.npy.")
        if asked.speaker or asked.voice is not None or asked.speed != 1.0:
            raise BadInput("Who speaks, and how fast, is in the codes: leave --speaker, --voice and --speed out.")
        codes = asked.codes
        if codes.ndim != 2 or codes.shape[0] != self._decoder.codebooks or not codes.shape[1]:
            raise BadInput(f"--codes: expected [{self._decoder.codebooks}, N] whole numbers, not {list(codes.shape)}.")
        return self._decoder.stream(_one_by_one(codes), stopwatch)

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        self._decoder.close()


def open_codes_speaker(plan: Plan, backend: Backend) -> Speaker:
    """The speech decoder of a Qwen3's plan; raises as `open_qwen3`, and BadInput where no sample rate is told."""
    decoder = open_qwen3(plan, backend)
    if decoder.sample_rate is None:
        decoder.close()
        raise BadInput(f"{plan.path}: the manifest of its speech decoder states no sample rate; export it again.")
    return CodesSpeaker(decoder, decoder.sample_rate)


def _one_by_one(codes: Array) -> Iterator[Array]:
    for place in range(codes.shape[1]):
        yield codes[None, :, place : place + 1]
