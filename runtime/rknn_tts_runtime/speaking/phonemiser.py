"""Starts Piper's own phonemiser, which is a program of its own (`piper_phonemiser.py`), and reads its answer.

It needs a Python (3.9 or newer) that has piper-tts. That is the one that runs this, or the one that the environment
variable RKNN_TTS_PHONEMISER_PYTHON names. The command espeak-ng would give other phonemes: it tells no punctuation.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Sequence

from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.speaking.piper_phonemiser import NOT_INSTALLED

PROGRAM = Path(__file__).with_name("piper_phonemiser.py")
"""The program that knows Piper's phonemiser."""

PYTHON_VARIABLE = "RKNN_TTS_PHONEMISER_PYTHON"
"""The environment variable that names a Python with piper-tts."""

SECONDS = 60.0
"""As the toolchain: a page of text takes 0.2 s on a PC, most of it to load; one that is still at it hangs."""

WITHOUT_IT = (
    f"install it (pip install piper-tts, Python 3.9 or newer; {PYTHON_VARIABLE}=/path/to/python names one that has "
    "it), or give --ids or --phonemes"
)

Phonemise = Callable[[str, Sequence[Sequence[str]], str], "list[list[str]]"]
"""espeak-ng's voice, vowel clusters and a text to its phonemes, a list for each sentence."""


def piper_phonemes(voice: str, clusters: Sequence[Sequence[str]], text: str) -> list[list[str]]:
    """The phonemes of `text`, as Piper's phonemiser has them, a list for each sentence.

    Args:
        voice: espeak-ng's name of the language.
        clusters: phonemes that follow each other and are one symbol.
        text: what is to be read.

    Raises:
        BadInput: there is no phonemiser, or espeak-ng has no such language.
        RunFault: it broke, hung, or gave no phonemes.
    """
    # A zero ends a text in C.
    asked = {"voice": voice, "clusters": [list(cluster) for cluster in clusters], "text": text.replace("\0", " ")}
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    try:
        done = subprocess.run(
            [python, str(PROGRAM)],
            input=json.dumps(asked).encode("ascii"),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise BadInput(f"--text: {python} cannot be run ({error.strerror}), to read with; {WITHOUT_IT}.") from error
    except subprocess.TimeoutExpired as error:
        raise RunFault(f"Piper's phonemiser had no answer after {SECONDS:g} s; give --ids or --phonemes.") from error
    told = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["silent"])[-1][:200]
    if done.returncode == NOT_INSTALLED:
        raise BadInput(f"--text: a text is read by Piper's phonemiser, and {python} has none ({told}); {WITHOUT_IT}.")
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        raise RunFault(f"Piper's phonemiser ended with {how} ({told}); give --ids or --phonemes.")
    answer = _answer(done.stdout)
    if "fault" in answer:
        raise BadInput(
            f"--text: espeak-ng cannot read it in the voice's language, {voice!r} ({answer['fault']!s:.200}); give "
            "--ids or --phonemes."
        )
    return [[str(phoneme) for phoneme in sentence] for sentence in answer["phonemes"]]


def _answer(printed: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(printed.decode("utf-8"))
    except ValueError:
        answer = None
    good = isinstance(answer, dict) and ("fault" in answer or _are_phonemes(answer.get("phonemes")))
    if not isinstance(answer, dict) or not good:
        raise RunFault(f"Piper's phonemiser gave no phonemes ({printed[:80]!r}); give --ids or --phonemes.")
    return answer


def _are_phonemes(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(sentence, list) for sentence in given)
