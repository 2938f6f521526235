"""Starts a phonemiser, a program of its own beside this file, and reads its answer: JSON in, JSON out.

    stdin: what it is asked      stdout: {"phonemes": [...]} or {"fault": "why it cannot be read"}

The Python that runs it is the one that runs this, or the one that the environment variable RKNN_TTS_PHONEMISER_PYTHON
names.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from rknn_tts_runtime.faults import BadInput, RunFault

PYTHON_VARIABLE = "RKNN_TTS_PHONEMISER_PYTHON"
"""The environment variable that names a Python with a phonemiser."""

NOT_INSTALLED = 3
"""A program's exit code where its Python lacks the phonemiser, or what that needs."""

INSTEAD = "give --ids or --phonemes"
"""What a person does without."""


class Phonemiser(NamedTuple):
    """A phonemiser.

    Attributes:
        called: its name, for sentences.
        program: its file.
        install: what installs it, for sentences: "pip install piper-tts".
        seconds: that it may take; one that takes longer hangs.
    """

    called: str
    program: Path
    install: str
    seconds: float


def answer_of(phonemiser: Phonemiser, asked: Mapping[str, object]) -> dict[str, Any]:
    """What `phonemiser` answers: an object with a list `phonemes`, or with a `fault`.

    Raises:
        BadInput: it is not installed.
        RunFault: it broke, hung, or gave something else.
    """
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    called = phonemiser.called
    remedy = f"install it ({phonemiser.install}; {PYTHON_VARIABLE}=/path/to/python names one that has it), or {INSTEAD}"
    try:
        done = subprocess.run(
            [python, str(phonemiser.program)],
            input=json.dumps(asked).encode("ascii"),
            capture_output=True,
            timeout=phonemiser.seconds,
            check=False,
        )
    except OSError as error:
        raise BadInput(f"--text: {python} cannot be run ({error.strerror}), to read with; {remedy}.") from error
    except subprocess.TimeoutExpired as error:
        raise RunFault(f"{called} had no answer after {phonemiser.seconds:g} s; {INSTEAD}.") from error
    told = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["silent"])[-1][:200]
    if done.returncode == NOT_INSTALLED:
        raise BadInput(f"--text: a text is read by {called}, and {python} has none ({told}); {remedy}.")
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        raise RunFault(f"{called} ended with {how} ({told}); {INSTEAD}.")
    try:
        answer = json.loads(done.stdout.decode("utf-8"))
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not ("fault" in answer or isinstance(answer.get("phonemes"), list)):
        raise no_phonemes(phonemiser, done.stdout)
    return answer


def no_phonemes(phonemiser: Phonemiser, answer: object) -> RunFault:
    """That an answer is none."""
    return RunFault(f"{phonemiser.called} gave no phonemes ({answer!r:.80}); {INSTEAD}.")
