"""What a ladder of windows costs an utterance of given lengths, as the board covers it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rknn_tts_runtime.window_cover import Rung, cover_utterance


@dataclass(frozen=True)
class Expected:
    """Means over utterances.

    Attributes:
        ms: modelled time of all windows of an utterance.
        first_audio_ms: of its first window.
        runs: of each rung, how often an utterance runs it.
    """

    ms: float
    first_audio_ms: float
    runs: tuple[float, ...]


def expected_cost(shares: Mapping[int, float], rungs: Sequence[Rung]) -> Expected:
    """The means over utterances of so many frames.

    Args:
        shares: frames of an utterance to its share; the shares sum to 1.
        rungs: the ladder; a rung's cost is its modelled ms.

    Raises:
        BadInput: the ladder does not hold one of the lengths.
    """
    runs = [0.0] * len(rungs)
    first = 0.0
    for frames, share in shares.items():
        steps = cover_utterance(frames, rungs)
        first += share * rungs[steps[0].rung].cost
        for step in steps:
            runs[step.rung] += share
    return Expected(math.fsum(rung.cost * count for rung, count in zip(rungs, runs, strict=True)), first, tuple(runs))
