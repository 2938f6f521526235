"""The first command of docs/kokoro.md and the program behind it, with the real toolkit, against what the page shows.

It takes minutes, so the suite reads that command and does not run it (tests/docs/not_run.py). `make bench` runs it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.docs.output import missing_lines
from tests.docs.pages import ROOT, Block, blocks, files_of
from tests.docs.workplace import Workplace, make_workplace

PAGE = ROOT / "docs" / "kokoro.md"
ENGINE_COMMAND = "make engine FAMILY=kokoro TARGET=rk3588"
PROGRAM = "speak_kokoro.py"
TIMEOUT_S = 1800


@pytest.fixture
def workplace(tmp_path: Path, fetched_voice: Path, fetched_kokoro: Path, fetched_kokoro_voices: Path) -> Workplace:
    """A working copy with the default checkpoint and the voices at hand."""
    made = make_workplace(tmp_path, fetched_voice)
    for fetched in (fetched_kokoro, fetched_kokoro_voices):
        (made.cache / CHECKPOINTS_FOLDER / fetched.name).symlink_to(fetched)
    return made


def test_page_shows_what_its_first_command_and_its_program_print(workplace: Workplace) -> None:
    first, speaking = shown(f"{ENGINE_COMMAND}\n"), shown(PROGRAM)
    (workplace.folder / PROGRAM).write_text(files_of(PAGE)[PROGRAM], encoding="utf-8")
    for block in (first, speaking):
        done = workplace.run(block.text, timeout_s=TIMEOUT_S)
        assert done.code == 0, done.output
        assert missing_lines(block.output or "", done.output) == [], done.output


def shown(text: str) -> Block:
    """The first block of commands that holds `text`."""
    return next(block for block in blocks(PAGE) if block.language == "sh" and text in block.text)
