from __future__ import annotations

from pathlib import Path

import pytest

from farm.died import Died, read_died, write_died
from farm.outcomes import Ended

DIED = Died("compile-0123456789abcdef", 1, Ended.MEMORY, "It took 1.0 GB.", "n1", 1_000_000_000)


def test_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_died(DIED, tmp_path / "died" / "x.json")  # the folder is made
    assert read_died(tmp_path / "died" / "x.json") == DIED


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", "\udcff"])
def test_there_is_no_note_when_it_is_damaged(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.json").write_text(content, encoding="utf-8", errors="surrogateescape")
    assert read_died(tmp_path / "x.json") is None
