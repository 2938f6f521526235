"""What a bench speaks where nothing was asked for.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.voices import QWEN3

PHONEMES = "həlˈoʊ wˈɜːld, aɪ lˈɪv ɔn ə smˈɔːl bˈɔːɹd."
"""Hello world, I live on a small board: some 2.5 s, in signs that the tables of all English voices have."""

INFLECT = "inflect"
"""The family that takes ids alone; its symbols are of its release."""

IDS = tuple(range(1, 65))
"""64 ids that every table has; nothing that is heard."""

CODEBOOKS, CODES, LARGEST_CODE = 16, 100, 8
"""Of Qwen3's 12 Hz tokenizer: its codebooks; codes of 8 s; draws that every codebook has, however small a stand-in."""


def example(family: str, asked: Asked) -> Asked:
    """`asked` with something to say, if it has nothing: a sentence, or numbers that take as long."""
    if any(given is not None for given in (asked.text, asked.phonemes, asked.ids, asked.codes)):
        return asked
    if family == QWEN3:
        drawn = np.random.default_rng(asked.seed).integers(0, LARGEST_CODE, (CODEBOOKS, CODES))
        return replace(asked, codes=drawn)
    return replace(asked, ids=IDS) if family == INFLECT else replace(asked, phonemes=PHONEMES)
