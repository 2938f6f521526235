"""Runs every command of the pages, README.md first, and compares what the pages show with what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.not_run import NOT_RUN, NotRun, fault_of, not_run
from tests.docs.output import missing_lines
from tests.docs.pages import FILES, ROOT, Block, blocks, files_of, pages
from tests.docs.workplace import Workplace, make_workplace

SHELL_BLOCKS = [block for page in pages() for block in blocks(page) if block.language == "sh"]
SHOWS_GRAPHS = "docs/passes.md"
"""Its blocks are graphs before and after a pass, printed by no command."""

CLEAN = "rknn-tts clean"
"""Takes away what the other commands share, so it runs in a workplace of its own."""


def commands(block: Block) -> list[str]:
    """The command lines of `block`, continued ones joined, comments dropped."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [" ".join(line.split(" #")[0].split()) for line in lines if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=lambda block: block.label)
def test_commands_do_what_the_page_says(
    block: Block, request: pytest.FixtureRequest, fetched_voice: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = [line for line in commands(block) if not_run(line) is None]
    for line in commands(block):
        assert fault_of(line) == "", line
    if not run:
        return
    if any(CLEAN in line or line == "make clean" for line in run):
        place = make_workplace(tmp_path_factory.mktemp("apart"), fetched_voice)
    else:
        place = request.getfixturevalue("workplace")
    write_files(place, ROOT / block.page)
    done = place.run("\n".join(run))
    assert done.code == 0, done.output
    assert missing_lines(block.output or "", done.output) == [], done.output


def write_files(place: Workplace, page: Path) -> None:
    """Write the files that the page's blocks are."""
    for name, text in files_of(page).items():
        (place.folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("row", NOT_RUN, ids=lambda row: row.pattern.pattern)
def test_not_run_is_needed_when_it_is_listed(row: NotRun) -> None:
    assert any(not_run(line) is row for block in SHELL_BLOCKS for line in commands(block))


def test_what_a_page_shows_stands_right_behind_a_command() -> None:
    shown = [block for page in pages() for block in blocks(page) if block.language == "text"]
    assert [block.label for block in shown if block.page != SHOWS_GRAPHS] == []


def test_blocks_are_of_a_known_kind() -> None:
    known = {"sh", "text", "json", "", *FILES}
    assert [block.label for page in pages() for block in blocks(page) if block.language not in known] == []
