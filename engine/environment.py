"""Finds the Python of the converter environment, has it made where it is missing, and says what it is."""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import sha256_of
from environments.locks import DEFAULT_TOOLKIT

CONVERTER_PYTHON = "RKNN_TTS_CONVERTER_PYTHON"
"""Environment variable: the Python of a ready converter environment, as in a pinned CI image."""

_PASSED_ON = ("LD_LIBRARY_PATH", "RKNN_TTS_TORCH")
"""What the toolkit may see of our environment, where it is set: no PYTHONPATH, no proxies, nothing of the user's."""

_INVENTORY = """
import importlib.metadata, sys
print(sys.implementation.name, sys.version)
for line in sorted({f"{item.metadata['Name']}=={item.version}" for item in importlib.metadata.distributions()}):
    print(line)
"""
"""Run in the converter environment: everything that is installed there, by name and version (0.15 s, measured)."""

_INVENTORY_LIMIT_S = 60.0
"""Far more than reading the metadata of an environment needs, on a busy machine and a network disk."""

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
        held, last = _pass_through(setup.stderr.fileno())
        python = os.fsdecode(setup.stdout.read()).strip()
    sentence = last.decode(errors="replace").strip().removeprefix("rknn-tts: ")
    if setup.returncode != 0:
        raise UserInput(
            sentence or f"The converter environment rknn-{toolkit} could not be set up (exit code {setup.returncode})."
        )
    _show(held)
    if not python or not os.access(python, os.X_OK):
        raise UserInput(
            f"The set-up of the converter environment rknn-{toolkit} named no Python that runs: {python!r}."
        )
    return Path(python)


def environment_digest(python: Path, lock: Path, ours: Mapping[str, str]) -> str:
    """A digest of the converter environment, as far as it may change an engine: 64 hex digits.

    Holds the version of its Python, those of all that is installed, its lock, where a user's own stands, and the
    variables that the toolkit gets from ours.

    Args:
        python: its interpreter.
        lock: what it was made from; may be missing where the user named another environment.
        ours: the variables of our process.

    Raises:
        UserInput: the interpreter does not run, or cannot say what is installed.
    """
    parts = {
        "installed": _installed(python, ours),
        "lock": sha256_of(lock) if lock.is_file() else None,
        "named": ours.get(CONVERTER_PYTHON) or None,
        "variables": passed_on(ours),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def passed_on(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of our process that the toolkit gets as well."""
    return {name: ours[name] for name in _PASSED_ON if name in ours}


def _installed(python: Path, ours: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _INVENTORY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**passed_on(ours), "PYTHONUTF8": "1"},
            cwd="/",
            timeout=_INVENTORY_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserInput(f"The converter's Python {python} does not run ({error}).") from error
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise UserInput(f"The converter's Python {python} cannot say what is installed there: {said}.")
    return done.stdout


def _pass_through(stderr_fd: int) -> tuple[bytes, bytes]:
    """Shows what the set-up says as it says it, but for a line that it ends right after.

    Returns:
        that line, or nothing; and the last line, whether it was shown or not.
    """
    held = last = b""
    while True:
        ready, _, _ = select.select([stderr_fd], [], [], _HOLD_S)
        chunk = os.read(stderr_fd, 1 << 16) if ready else None
        if chunk == b"":
            return held, last
        lines = (held + (chunk or b"")).splitlines(keepends=True)  # of bytes: at line ends and carriage returns alone
        last = lines[-1] if lines else last
        held = lines.pop() if chunk and lines else b""
        _show(b"".join(lines))


def _show(text: bytes) -> None:
    sys.stderr.write(text.decode(errors="replace"))
    sys.stderr.flush()
