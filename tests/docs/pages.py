"""The pages that users read, taken apart: fenced blocks, links, headings, tables.

A page's conventions: a ```sh block holds commands that a test runs; a ```text block right behind one shows what they
print, where a line `...` leaves lines out and a line that ends in ` ...` is cut off; a ```python or ```toml block whose
first line is a comment with a file's name (`# speak.py`) is that file. Commands that no test runs are listed, with the
reason, in `tests/docs/not_run.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILES = frozenset({"python", "toml"})
"""Languages of blocks that may be files."""

_FENCE = "```"
_FILE_NAME = re.compile(r"# (\w+\.(?:py|toml))\n")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\| *`([^`]+)` *\|(.*)\|$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: the page, relative to the checkout.
        line: the line of its opening fence.
        language: what stands behind the fence.
        text: what it holds.
        output: for `sh`, the `text` block that follows; None where none does.
    """

    page: str
    line: int
    language: str
    text: str
    output: str | None = None

    @property
    def label(self) -> str:
        """As a test's id."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md, every page of docs/, and the README of the runtime."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "runtime" / "README.md"]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of `page` in order."""
    found: list[Block] = []
    name, lines = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    last_end = -1
    for number, line in enumerate(lines):
        if not line.startswith(_FENCE):
            continue
        if start is None:
            start = number
            continue
        language, text = lines[start].removeprefix(_FENCE), "\n".join(lines[start + 1 : number]) + "\n"
        between = "".join(lines[last_end + 1 : start]).strip()
        if language == "text" and found and found[-1].language == "sh" and not between:
            shell = found.pop()
            found.append(Block(name, shell.line, "sh", shell.text, text))
        else:
            found.append(Block(name, start + 1, language, text))
        start, last_end = None, number
    assert start is None, f"{name}: the block at line {start} has no end"
    return found


def files_of(page: Path) -> dict[str, str]:
    """The files that the Python and TOML blocks of `page` are, by name."""
    named = [(_FILE_NAME.match(block.text), block.text) for block in blocks(page) if block.language in FILES]
    return {match[1]: text for match, text in named if match}


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """The targets of the page's links."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as they are made on code hosts: lower case, words joined by dashes."""
    headings = _HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table_rows(page: Path) -> dict[str, list[str]]:
    """The rows of the page's tables whose first cell is one word of code: that word to the other cells."""
    return {key: [cell.strip() for cell in cells.split("|")] for key, cells in _TABLE_ROW.findall(prose(page))}
