"""Which windows of a ladder speak utterances of some lengths, as lines.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from itertools import groupby
from typing import Sequence

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.ladders import costs_of, rungs_of, window_of
from rknn_tts_runtime.manifest import EngineManifest
from rknn_tts_runtime.window_cover import Rung, cover_utterance

LENGTHS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Of the utterances that are told of: a word, a short and a long sentence, and beyond."""

MOST_FRAMES = 100_000
"""That are told of: of real engines 10 s have some 1000."""

ASSUMED_HZ = 22050
"""Where no manifest states a sample rate."""


def ladder_lines(manifests: Sequence[EngineManifest]) -> list[str]:
    """What speaks an utterance of each of `LENGTHS_S`: "5.0 s (431 frames): w128, w448, 95.1 ms (modelled)".

    Raises:
        BadInput: there are none, or one has no window.
    """
    rungs = rungs_of(manifests)
    _, kind = costs_of(manifests)
    window = window_of(manifests[0])
    lines = []
    for seconds in LENGTHS_S:
        frames = max(1, round(seconds * (window.sample_rate or ASSUMED_HZ) / window.hop))
        if frames <= MOST_FRAMES:
            lines.append(f"{seconds:.1f} s ({frames} frames): {_spoken_by(frames, rungs, kind)}")
    return lines


def _spoken_by(frames: int, rungs: Sequence[Rung], kind: str | None) -> str:
    try:
        steps = cover_utterance(frames, rungs)
    except BadInput:
        return "too short for every window: add an engine with a masked one"
    windows = groupby(rungs[step.rung].width for step in steps)
    counts = [(width, len(list(steps_of_it))) for width, steps_of_it in windows]
    parts = [f"{count} x w{width}" if count > 1 else f"w{width}" for width, count in counts]
    cost = sum(rungs[step.rung].cost for step in steps)
    return ", ".join([*parts, *([f"{cost:.1f} ms ({kind})"] if kind else [])])
