"""Holds the REGTASK table of docs/troubleshooting.md and the code's together."""

from __future__ import annotations

import re

from logs.regtask import KNOWN_FIELDS, REGTASK_FLOOD
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (any|\w+) `(0x[0-9a-f]+)` \| (any|`0x[0-9a-f]+`) \| (\w+) \|", re.MULTILINE)


def test_regtask_table_of_the_page_is_the_codes() -> None:
    told = [
        (None if core == "any" else core, int(offset, 16), None if limit == "any" else int(limit.strip("`"), 16), kind)
        for core, offset, limit, kind in _ROW.findall(TEXT)
    ]
    assert told == [(row.target, row.offset, row.limit, row.evidence.value) for row in KNOWN_FIELDS]


def test_flood_of_the_page_is_the_codes() -> None:
    assert f"{REGTASK_FLOOD:,} lines" in TEXT
