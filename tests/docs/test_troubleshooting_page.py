"""Holds docs/troubleshooting.md and the code together: the REGTASK table, and the sentences it quotes."""

from __future__ import annotations

import ast
import re

import pytest

from logs.regtask import KNOWN_FIELDS, REGTASK_FLOOD
from tests.docs.pages import ROOT, prose
from tests.docs.test_architecture import CHECKED

TEXT = prose(ROOT / "docs" / "troubleshooting.md")
_REGTASK_ROW = re.compile(r"^\| (any|\w+) `(0x[0-9a-f]+)` \| (any|`0x[0-9a-f]+`) \| (\w+) \|", re.MULTILINE)
_SENTENCE_TABLE = re.compile(r"^\| It says .*\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_LEFT_OUT = "..."
QUOTES = [row.split("|")[1].strip() for table in _SENTENCE_TABLE.findall(TEXT) for row in table.splitlines()]


def test_regtask_table_of_the_page_is_the_codes() -> None:
    told = [
        (None if core == "any" else core, int(offset, 16), None if limit == "any" else int(limit.strip("`"), 16), kind)
        for core, offset, limit, kind in _REGTASK_ROW.findall(TEXT)
    ]
    assert told == [(row.target, row.offset, row.limit, row.evidence.value) for row in KNOWN_FIELDS]


def test_flood_of_the_page_is_the_codes() -> None:
    assert f"{REGTASK_FLOOD:,} lines" in TEXT


def texts_of_the_code() -> list[str]:
    """Every text in the code, `...` where a formatted value stands."""
    found = []
    for path in CHECKED:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else _LEFT_OUT for part in node.values]
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value.replace("{}", _LEFT_OUT))
    return found


CODE = "\n".join(texts_of_the_code())


@pytest.mark.parametrize("quote", QUOTES)
def test_sentences_that_the_page_quotes_are_the_codes(quote: str) -> None:
    words = [piece.strip() for piece in quote.split(_LEFT_OUT) if piece.strip()]
    wanted = r"[^\n]*".join(map(re.escape, words))
    assert re.search(wanted, CODE)


def test_page_quotes_sentences() -> None:
    assert len(QUOTES) > 20
