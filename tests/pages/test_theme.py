from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from pages.theme import environment, is_marked, style_digest, style_sheet

TEMPLATE = "<style>{{ style }}</style><p title='{{ text }}'>{{ text }}</p>{{ drawing|svg }}"


def written(folder: Path, **values: str) -> str:
    (folder / "page.html.j2").write_text(TEMPLATE, encoding="utf-8")
    return environment(folder).get_template("page.html.j2").render(**values)


def test_environment_escapes_texts_when_they_are_hostile(tmp_path: Path) -> None:
    page = written(tmp_path, text="'><script>\x1b[1m", drawing="<svg></svg>")
    assert "<p title='&#39;&gt;&lt;script&gt;\\x1b[1m'>&#39;&gt;&lt;script&gt;\\x1b[1m</p><svg></svg>" in page


def test_environment_raises_when_a_name_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UndefinedError):
        written(tmp_path, text="there")


def test_digest_is_of_what_stands_in_the_style_element(tmp_path: Path) -> None:
    found = re.search(r"<style>(.*?)</style>", written(tmp_path, text="", drawing=""), re.DOTALL)
    assert found is not None
    assert found[1] == style_sheet()
    assert style_digest() == "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


def test_page_is_marked_when_the_mark_stands_at_its_beginning(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(b"<html>" + b"MARK" + b" " * 2000)
    assert is_marked(page, b"MARK")
    page.write_bytes(b" " * 2000 + b"MARK")
    assert not is_marked(page, b"MARK")
