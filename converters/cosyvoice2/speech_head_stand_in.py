"""Seeded random weights of a speech head at CosyVoice2's sizes, and hidden states to multiply; no torch.

Weights and hidden states are near normal, as trained ones are: of even numbers, whose largest is 1.7 of their root mean
square and not 4, 8 bits would keep more than they do of a checkpoint.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from converters.cosyvoice2.speech_head_file import BIAS, GAIN, WEIGHT, SpeechHead
from models.draws import uniform

FloatArray = NDArray[np.float32]

HIDDEN, LOGITS = 896, 6564
"""Qwen2-0.5B's width, and CosyVoice2's 6561 speech tokens with three more (upstream's Qwen2LM)."""

RECIPE = 1
"""Counts what is drawn here: to be raised when a number comes out otherwise."""

_SUMMED = 12
"""Even numbers from -1/2 to 1/2 whose sum has a variance of one; no sum is beyond 6."""

_WEIGHT_SIZE = 0.06
"""Root mean square of a weight: logits of about 2 where hidden states are of one, as those of a trained head whose
best token has a fair share of the probability."""


def near_normal(name: str, shape: tuple[int, ...], seed: int) -> FloatArray:
    """Numbers of mean 0 and variance 1, the same for a seed and a name on every machine."""
    made = np.zeros(shape, np.float32)
    for draw in range(_SUMMED):
        made += uniform(f"{name} {draw}", shape, seed, -0.5, 0.5)
    return made


def stand_in(seed: int, logits: int = LOGITS, hidden: int = HIDDEN) -> SpeechHead:
    """A head that stands in for a checkpoint's."""
    return SpeechHead(
        weight=near_normal(WEIGHT, (logits, hidden), seed) * np.float32(_WEIGHT_SIZE),
        bias=uniform(BIAS, (logits,), seed, -0.5, 0.5),
        gain=uniform(GAIN, (hidden,), seed, 0.5, 1.5),
    )


def hidden_states(gain: FloatArray, count: int, purpose: str, seed: int) -> FloatArray:
    """Hidden states [count, D] as the norm ahead of the head leaves them: a root mean square of one, times its gain.

    Args:
        gain: of the norm, [D].
        count: how many.
        purpose: what they are for: another one has others.
        seed: of the draws.
    """
    drawn = near_normal(f"hidden for {purpose}", (count, gain.shape[0]), seed).astype(np.float64)
    size = np.sqrt(np.mean(np.square(drawn), axis=1, keepdims=True))
    return np.asarray(drawn / size * gain, np.float32)
