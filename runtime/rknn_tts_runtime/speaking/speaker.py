"""What is asked of a voice, and what a voice is to the commands that speak.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Protocol

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Asked:
    """What is to be said, and how: one of `text`, `phonemes`, `ids` and `codes` is given.

    Attributes:
        text: words.
        phonemes: IPA, as the voice's own table spells it.
        ids: numbers of the voice's table, as the voice takes them (with what begins and ends a sentence).
        codes: of families that voice the codes of a language model: `[Q, N]` whole numbers, Q codebooks.
        speaker: of a voice with several, which.
        voice: a file with a voice's style, of families that need one.
        speed: 1.0 as the voice speaks, 2.0 twice as fast.
        seed: of all noise that is drawn.
    """

    text: str | None = None
    phonemes: str | None = None
    ids: tuple[int, ...] | None = None
    codes: npt.NDArray[np.integer[Any]] | None = field(default=None, compare=False)
    speaker: int = 0
    voice: Path | None = None
    speed: float = 1.0
    seed: int = 0


def check_speed(speed: float) -> None:
    """Check that one can speak so fast.

    Raises:
        BadInput: it is no number above 0.
    """
    if not (math.isfinite(speed) and speed > 0):
        raise BadInput(f"--speed {speed}: a number above 0 is expected; 1 is the voice's own.")


class Speaker(Protocol):
    """A voice whose engines are open.

    Attributes:
        sample_rate: samples a second.
        notes: what a person should know of what is heard, as sentences: random weights, for one.
    """

    @property
    def sample_rate(self) -> int: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """What was asked for, in pieces `[S]` in their order, each as soon as it is there.

        Raises:
            BadInput: it cannot be said; nothing was run.
            RunFault: an engine failed.
        """

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
