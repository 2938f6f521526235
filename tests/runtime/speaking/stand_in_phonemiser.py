"""A program in the place of Piper's phonemiser."""

from __future__ import annotations

from pathlib import Path

import pytest
from rknn_tts_runtime.speaking import phonemiser


def answer(monkeypatch: pytest.MonkeyPatch, folder: Path, lines: str, seconds: float = 60.0) -> Path:
    """Puts a program that runs `lines` in the place of Piper's; gives the file that it keeps its question in.

    Args:
        monkeypatch: takes it away again.
        folder: where it is written.
        lines: with json, os, sys and time.
        seconds: that it may take.
    """
    asked, program = folder / "asked.json", folder / "program.py"
    program.write_text(
        "import json, os, sys, time\nquestion = sys.stdin.buffer.read()\n"
        f"open({str(asked)!r}, 'wb').write(question)\n{lines}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(phonemiser, "PROGRAM", program)
    monkeypatch.setattr(phonemiser, "SECONDS", seconds)
    return asked


def giving(*sentences: list[str]) -> str:
    """Lines that answer with these phonemes."""
    return f"print(json.dumps({{'phonemes': {list(sentences)!r}}}))"
