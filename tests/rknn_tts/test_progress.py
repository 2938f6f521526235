from __future__ import annotations

import io

import pytest

from rknn_tts.progress import PlainSay, progress_on
from tests.rknn_tts.test_blocks import Terminal


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_progress_has_a_line_a_step_when_stages_follow_quickly() -> None:
    stream = io.StringIO()
    say = PlainSay(stream, Clock())
    for text in ("opening a", "building: loading", "building: compiling: TilingPass", "judging"):
        say.step(text)
    assert stream.getvalue() == "opening a\nbuilding\njudging\n"


def test_plain_progress_names_a_place_on_a_hub_whole() -> None:
    stream = io.StringIO()
    PlainSay(stream, Clock()).step("looking for hf://owner/Inflect-Micro-v2")
    assert stream.getvalue() == "looking for hf://owner/Inflect-Micro-v2\n"


def test_plain_progress_tells_of_a_stage_when_nothing_was_written_for_long() -> None:
    stream, clock = io.StringIO(), Clock()
    say = PlainSay(stream, clock)
    say.step("building: loading")
    clock.now = 29.0
    say.step("building: fuse ops")
    clock.now = 30.0
    say.step("building: compiling")
    clock.now = 31.0
    say.step("building: simulator")
    assert stream.getvalue() == "building\nbuilding: compiling\n"


def test_progress_writes_plain_lines_when_the_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    with progress_on(stream) as say:
        say.step("one\x1b[2J")
        say.note("Stays.")
    assert stream.getvalue() == "one\\x1b[2J\nnote: Stays.\n"


def test_progress_keeps_notes_and_clears_steps_when_the_stream_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with progress_on(stream) as say:
        say.step("[step] one")
        say.note("[note] stays.")
    text = stream.getvalue()
    assert "[note] stays." in text
    assert text.rstrip().endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))
