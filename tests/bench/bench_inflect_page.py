"""The command of docs/inflect.md on random weights, with the real toolkit, and its program, against the page.

At the published sizes they take a minute or more, so the suite reads them and does not run them
(tests/docs/not_run.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.output import missing_lines
from tests.docs.pages import ROOT, Block, blocks, files_of
from tests.docs.workplace import Workplace, make_workplace

PAGE = ROOT / "docs" / "inflect.md"
ENGINE_COMMAND = "make engine FAMILY=inflect TARGET=rk3588 CHECKPOINT=random WINDOW=256"
PROGRAM = "speak_inflect.py"
TIMEOUT_S = 3600.0


@pytest.fixture
def workplace(tmp_path: Path, fetched_voice: Path) -> Workplace:
    return make_workplace(tmp_path, fetched_voice)


def test_page_shows_what_its_command_on_random_weights_and_its_program_print(workplace: Workplace) -> None:
    made, speaking = shown(f"{ENGINE_COMMAND}\n"), shown(PROGRAM)
    (workplace.folder / PROGRAM).write_text(files_of(PAGE)[PROGRAM], encoding="utf-8")
    for block in (made, speaking):
        done = workplace.run(block.text, timeout_s=TIMEOUT_S)
        assert done.code == 0, done.output
        assert missing_lines(block.output or "", done.output) == [], done.output


def shown(text: str) -> Block:
    """The first block of commands that holds `text`."""
    return next(block for block in blocks(PAGE) if block.language == "sh" and text in block.text)
