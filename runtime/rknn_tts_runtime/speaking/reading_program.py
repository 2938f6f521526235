"""Starts a phonemiser, a program of its own beside this file, and reads its answer: JSON in, JSON out.

    stdin: what it is asked      stdout: {"phonemes": [...]} or {"fault": "why it cannot be read"}

`answer_of` runs it with the Python that runs this, or with the one that the environment variable
RKNN_TTS_PHONEMISER_PYTHON names; a caller that has a Python of its own for it takes `started` and `answer_in`.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

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
        instead: what a person does without it, for sentences.
    """

    called: str
    program: Path
    install: str
    seconds: float
    instead: str = INSTEAD


def answer_of(phonemiser: Phonemiser, asked: Mapping[str, object]) -> dict[str, Any]:
    """What `phonemiser` answers: an object with a list `phonemes`, or with a `fault`.

    Raises:
        BadInput: it is not installed.
        RunFault: it broke, hung, or gave something else.
    """
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    named = f"{PYTHON_VARIABLE}=/path/to/python names one that has it"
    remedy = f"install it ({phonemiser.install}; {named}), or {phonemiser.instead}"
    try:
        done = started(phonemiser, (python,), asked)
    except OSError as error:
        raise BadInput(f"--text: {python} cannot be run ({error.strerror}), to read with; {remedy}.") from error
    if done.returncode == NOT_INSTALLED:
        raise BadInput(
            f"--text: a text is read by {phonemiser.called}, and {python} has none ({_last_words(done)}); {remedy}."
        )
    return answer_in(phonemiser, done)


def started(
    phonemiser: Phonemiser, python: Sequence[str], asked: Mapping[str, object]
) -> subprocess.CompletedProcess[bytes]:
    """`phonemiser`, run by the words `python` and told what it is `asked`, once it has ended.

    Raises:
        OSError: that Python cannot be run.
        RunFault: it hung.
    """
    try:
        return subprocess.run(
            [*python, str(phonemiser.program)],
            input=json.dumps(asked).encode("ascii"),
            capture_output=True,
            timeout=phonemiser.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFault(
            f"{phonemiser.called} had no answer after {phonemiser.seconds:g} s; {phonemiser.instead}."
        ) from error


def answer_in(phonemiser: Phonemiser, done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """What `phonemiser`, which has ended, answered: an object with a list `phonemes`, or with a `fault`.

    Raises:
        RunFault: it broke, or gave something else.
    """
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        raise RunFault(f"{phonemiser.called} ended with {how} ({_last_words(done)}); {phonemiser.instead}.")
    try:
        answer = json.loads(done.stdout.decode("utf-8"))
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not ("fault" in answer or isinstance(answer.get("phonemes"), list)):
        raise no_phonemes(phonemiser, done.stdout)
    return answer


def no_phonemes(phonemiser: Phonemiser, answer: object) -> RunFault:
    """That an answer is none."""
    return RunFault(f"{phonemiser.called} gave no phonemes ({answer!r:.80}); {phonemiser.instead}.")


def _last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last line of what it said of itself."""
    return (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["silent"])[-1][:200]
