"""Finds the Python of the converter environment, and has it made where it is missing."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from contracts.errors import UserInput

DEFAULT_TOOLKIT = "2.3.2"

CONVERTER_PYTHON = "RKNN_TTS_CONVERTER_PYTHON"
"""Environment variable: the Python of a ready converter environment, as in a pinned CI image."""

_HOLD_S = 0.5
"""A failing set-up ends within milliseconds of its last line, which our caller shows; others wait this long at most."""

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
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as setup:
        assert setup.stdout is not None
        assert setup.stderr is not None
        held = _pass_through(setup.stderr.fileno())
        python = os.fsdecode(setup.stdout.read()).strip()
    sentence = held.decode(errors="replace").strip().removeprefix("rknn-tts: ")
    if setup.returncode != 0:
        raise UserInput(
            sentence or f"The converter environment rknn-{toolkit} could not be set up (exit code {setup.returncode})."
        )
    if not python or not os.access(python, os.X_OK):
        raise UserInput(
            f"The set-up of the converter environment rknn-{toolkit} named no Python that runs: {python!r}."
        )
    return Path(python)


def _pass_through(stderr_fd: int) -> bytes:
    """Shows what the set-up says as it says it, but for a last line that it ends right after: that one is returned."""
    held = b""
    while True:
        ready, _, _ = select.select([stderr_fd], [], [], _HOLD_S)
        chunk = os.read(stderr_fd, 1 << 16) if ready else None
        if chunk == b"":
            return held
        lines = (held + (chunk or b"")).splitlines(keepends=True)
        held = lines.pop() if chunk and lines else b""
        sys.stderr.write(b"".join(lines).decode(errors="replace"))
        sys.stderr.flush()
