"""Starts Kokoro's own phonemiser, misaki, in a program of its own (`misaki_program.py`), and reads its answer.

It needs a Python that has misaki for the voice's language. That is the one that runs this, or the one that the
environment variable RKNN_TTS_PHONEMISER_PYTHON names.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.speaking.misaki_program import (
    AMERICAN,
    BRITISH,
    CHINESE,
    ESPEAK_LANGUAGES,
    JAPANESE,
    NOT_INSTALLED,
)
from rknn_tts_runtime.speaking.phonemiser import PYTHON_VARIABLE

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

_GIVE = "give --phonemes or --ids"


def misaki_phonemes(language: str, text: str) -> list[str]:
    """The phonemes of `text`, as misaki has them, an item for each line that has any.

    Args:
        language: a letter of `EXTRAS`.
        text: what is to be read.

    Raises:
        BadInput: misaki is not there, or cannot read that.
        RunFault: it broke, hung, or gave no phonemes.
    """
    asked = {"language": language, "text": text}
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    install = f"pip install '{EXTRAS[language]}' ({PYTHON_VARIABLE}=/path/to/python names a Python that has it)"
    try:
        done = subprocess.run(
            [python, str(PROGRAM)],
            input=json.dumps(asked).encode("ascii"),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise BadInput(f"--text: {python} cannot be run ({error.strerror}), to read with; {_GIVE}.") from error
    except subprocess.TimeoutExpired as error:
        raise RunFault(f"misaki had no answer after {SECONDS:g} s; {_GIVE}.") from error
    told = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["silent"])[-1][:200]
    if done.returncode == NOT_INSTALLED:
        raise BadInput(
            f"--text: a text is read by misaki, Kokoro's phonemiser, and {python} lacks it, or what it needs for this "
            f"language ({told}); {install}, or {_GIVE}."
        )
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        raise RunFault(f"misaki ended with {how} ({told}); {_GIVE}.")
    answer = _answer(done.stdout)
    if "fault" in answer:
        raise BadInput(f"--text: misaki cannot read it ({answer['fault']!s:.200}); {install}, or {_GIVE}.")
    return [str(phonemes) for phonemes in answer["phonemes"]]


def _answer(printed: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(printed.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not ("fault" in answer or isinstance(answer.get("phonemes"), list)):
        raise RunFault(f"misaki gave no phonemes ({printed[:80]!r}); {_GIVE}.")
    return answer
