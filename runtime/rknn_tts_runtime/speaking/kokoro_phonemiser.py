"""Asks Kokoro's own phonemiser, misaki, which is run in a program of its own (`misaki_program.py`).

It needs a Python that has misaki for the voice's language, see `reading_program`.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.misaki_program import AMERICAN, BRITISH, CHINESE, ESPEAK_LANGUAGES, JAPANESE
from rknn_tts_runtime.speaking.reading_program import INSTEAD, Phonemiser, answer_of

PROGRAM = Path(__file__).with_name("misaki_program.py")
"""The program that knows misaki."""

SECONDS = 300.0
"""misaki fetches a model for English when it runs first; one that takes longer hangs."""

EXTRAS = {
    AMERICAN: "misaki[en]",
    BRITISH: "misaki[en]",
    JAPANESE: "misaki[ja]",
    CHINESE: "misaki[zh]",
    **dict.fromkeys(ESPEAK_LANGUAGES, "misaki[en]"),  # which brings phonemizer and espeak-ng
}
"""What pip installs for a language."""

Phonemise = Callable[[str, str], "list[str]"]
"""A language and a text to its phonemes, an item a line."""


def misaki_phonemes(language: str, text: str) -> list[str]:
    """The phonemes of `text`, as misaki has them, an item for each line that has any.

    Args:
        language: a letter of `EXTRAS`.
        text: what is to be read.

    Raises:
        BadInput: misaki is not there, or cannot read that.
        RunFault: it broke, hung, or gave no phonemes.
    """
    install = f"pip install '{EXTRAS[language]}'"
    # A zero ends a text in C.
    asked = {"language": language, "text": text.replace("\0", " ")}
    answer = answer_of(Phonemiser("Kokoro's phonemiser misaki", PROGRAM, install, SECONDS), asked)
    if "fault" in answer:
        raise BadInput(f"--text: misaki cannot read it ({answer['fault']!s:.200}); {install}, or {INSTEAD}.")
    return [str(phonemes) for phonemes in answer["phonemes"]]
