from __future__ import annotations

import pytest

from pages.text import shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\nb\r\n c", "a b c"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("flow/größe", "flow/größe"),
        ("bad\udcff", "bad\\udcff"),
        ("\u202ename", "\\u202ename"),
    ],
)
def test_shown_hides_nothing_when_text_has_control_characters(text: str, seen: str) -> None:
    assert shown(text) == seen
