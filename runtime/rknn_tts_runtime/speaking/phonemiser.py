"""Asks Piper's own phonemiser, which is a program of its own (`piper_phonemiser.py`).

It needs a Python (3.9 or newer) that has piper-tts, see `reading_program`. The command espeak-ng is no way to the same
phonemes: it tells no punctuation.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.reading_program import INSTEAD, Phonemiser, answer_of, no_phonemes

PROGRAM = Path(__file__).with_name("piper_phonemiser.py")
"""The program that knows Piper's phonemiser."""

SECONDS = 60.0
"""A page of text takes 0.2 s on a PC, most of it to load; one that is still at it hangs."""

INSTALL = "pip install piper-tts, Python 3.9 or newer"

Phonemise = Callable[[str, Sequence[Sequence[str]], str], "list[list[str]]"]
"""espeak-ng's voice, vowel clusters and a text to its phonemes, a list for each sentence."""

Ask = Callable[[Phonemiser, Mapping[str, object]], "dict[str, Any]"]
"""A phonemiser and what it is asked to its answer (`answer_of`)."""


def piper_phonemes(
    voice: str, clusters: Sequence[Sequence[str]], text: str, ask: Ask = answer_of, instead: str = INSTEAD
) -> list[list[str]]:
    """The phonemes of `text`, as Piper's phonemiser has them, a list for each sentence.

    Args:
        voice: espeak-ng's name of the language.
        clusters: phonemes that follow each other and are one symbol.
        text: what is to be read.
        ask: runs the phonemiser.
        instead: what a person does without, for sentences.

    Raises:
        BadInput: there is no phonemiser, or espeak-ng has no such language.
        RunFault: it broke, hung, or gave no phonemes.
    """
    # A zero ends a text in C.
    asked = {"voice": voice, "clusters": [list(cluster) for cluster in clusters], "text": text.replace("\0", " ")}
    phonemiser = Phonemiser("Piper's phonemiser", PROGRAM, INSTALL, SECONDS, instead)
    answer = ask(phonemiser, asked)
    if "fault" in answer:
        raise BadInput(
            f"--text: espeak-ng cannot read it in the language {voice!r} ({answer['fault']!s:.200}); correct "
            f"espeak.voice in the JSON that the voice is exported with, or {instead}."
        )
    sentences = answer["phonemes"]
    if not all(isinstance(sentence, list) for sentence in sentences):
        raise no_phonemes(phonemiser, sentences)
    return [[str(phoneme) for phoneme in sentence] for sentence in sentences]
