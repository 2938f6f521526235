"""What the commands write, whatever is in it."""

from __future__ import annotations

import io
import sys

import pytest
from rknn_tts_runtime.commands.output import complain, tell


def test_complain_writes_one_line_however_a_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a\nb\x1b[31m\t.json: cannot be read.")
    assert capsys.readouterr().err == "a\\nb\\x1b[31m\\t.json: cannot be read.\n"


def test_tell_escapes_what_the_terminal_has_no_sign_for(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    tell("həlˈoʊ", "two")
    assert written.getvalue() == b"h\\u0259l\\u02c8o\\u028a\ntwo\n"


def test_tell_writes_nothing_where_the_shell_closed_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    tell("unheard")
