"""Python programs as executables that run wherever the checkout lies."""

from __future__ import annotations

import sys
from pathlib import Path


def write_program(path: Path, lines: str, flags: str = "") -> Path:
    """Write an executable to `path` that runs the Python `lines` under the tests' own interpreter.

    sh starts it: a `#!` line takes no interpreter in a folder with a space in its name.
    """
    python = sys.executable.replace("'", "'\\''")
    path.write_text(f"#!/bin/sh\n'''exec' '{python}' {flags} \"$0\" \"$@\"\n'''\n{lines}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
