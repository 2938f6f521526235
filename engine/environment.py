"""Finds the Python of the converter environment, and has it made where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import UserInput

DEFAULT_TOOLKIT = "2.3.2"

CONVERTER_PYTHON = "RKNN_TTS_CONVERTER_PYTHON"
"""Environment variable: the Python of a ready converter environment, as in a pinned CI image."""

_ROOT = Path(__file__).resolve().parent.parent


def converter_python(toolkit: str = DEFAULT_TOOLKIT) -> Path:
    """The Python of the converter environment that holds version `toolkit` of rknn-toolkit2.

    Progress of making it goes to our stderr.

    Raises:
        UserInput: there is none and it cannot be made; the message is the set-up's own sentence.
    """
    if ready := os.environ.get(CONVERTER_PYTHON):
        if not os.access(ready, os.X_OK):
            raise UserInput(
                f"{CONVERTER_PYTHON} is {ready}, which is missing or cannot be run; unset it or correct it."
            )
        return Path(ready).absolute()
    command = [sys.executable, str(_ROOT / "environments" / "create.py"), f"rknn-{toolkit}", "--print-python"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as setup:
        assert setup.stdout is not None
        assert setup.stderr is not None
        sentence = _pass_through(setup.stderr)
        python = setup.stdout.read().strip()
    if setup.returncode != 0:
        raise UserInput(
            sentence or f"The converter environment rknn-{toolkit} could not be set up (exit code {setup.returncode})."
        )
    if not python or not os.access(python, os.X_OK):
        raise UserInput(
            f"The set-up of the converter environment rknn-{toolkit} named no Python that runs: {python!r}."
        )
    return Path(python)


def _pass_through(lines: Iterable[str]) -> str:
    """Shows progress as it comes, each line once the next is there; returns the last, which tells why it failed."""
    last = ""
    for line in lines:
        if last:
            sys.stderr.write(last)
            sys.stderr.flush()
        last = line
    return last.strip()
