"""Blocks of text for a person, and their two renderings: rich on a terminal, plain aligned text everywhere else.

Whatever a block shows may come from a file that nobody vouches for: control characters are made visible, and nothing is
read as rich markup.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from pages.text import shown, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Tone = Literal["good", "bad", "warn", "plain"]

_STYLES: dict[Tone, str] = {"good": "green", "bad": "bold red", "warn": "bold yellow", "plain": ""}

_WIDE_COLUMNS = 110
"""From this width on a column of sentences is readable beside the others (looked at, with the gates of Piper)."""

_NARROWEST = 16
"""The column that gives way keeps as many characters, so that a name of ours can be read on two lines."""


@dataclass(frozen=True)
class Row:
    """The cells of one row, and the tone of its first."""

    cells: tuple[str, ...]
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    """Rows under column headings.

    Attributes:
        title: what the rows are.
        columns: one heading a cell.
        rows: the rows.
        right: indices of the columns that hold numbers.
        wraps: index of the column that gives way where the terminal is too narrow for all; where that is not enough,
            the columns go below each other in parts, each behind the first column.
        prose: whether the last column holds sentences, and where they go on a terminal that is too narrow for them
            beside the others: under the row ("below"), or nowhere ("wide").
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    right: frozenset[int] = frozenset()
    wraps: int = 0
    prose: Literal["none", "below", "wide"] = "none"


@dataclass(frozen=True)
class Facts:
    """Labelled texts, one a line."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Notice:
    """A sentence under a label that says what it is: `note`, `unproven`, `error`."""

    label: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Verbatim:
    """Lines of a file, as they are."""

    text: str


Block = Table | Facts | Notice | Verbatim


def is_terminal(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that can do more than print characters."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def write_blocks(blocks: Sequence[Block], stream: TextIO) -> None:
    """Write `blocks` to `stream`: by rich where it is a terminal, else plain.

    Raises:
        OSError: the stream cannot be written (BrokenPipeError where its reader has gone).
    """
    if not is_terminal(stream):
        stream.write(plain_text(blocks))
        stream.flush()
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    for block, gap in _with_gaps(blocks):
        if gap:
            console.print()
        for part in _parts(block, console.width):
            console.print(_rich(part, console), soft_wrap=isinstance(part, Verbatim))
    stream.flush()


def plain_text(blocks: Sequence[Block]) -> str:
    """`blocks` without colours or boxes: columns two blanks apart, nothing wrapped, for `grep` and `awk`."""
    return "".join("\n" * gap + "\n".join(_plain_lines(block)) + "\n" for block, gap in _with_gaps(blocks))


def _with_gaps(blocks: Sequence[Block]) -> Iterator[tuple[Block, bool]]:
    """Each block, and whether an empty line goes before it: not at the top, nor between notices."""
    for before, block in zip([None, *blocks], blocks, strict=False):
        yield block, before is not None and not (isinstance(before, Notice) and isinstance(block, Notice))


def _plain_lines(block: Block) -> list[str]:
    if isinstance(block, Verbatim):
        return [visible(line) for line in block.text.removesuffix("\n").split("\n")]
    if isinstance(block, Notice):
        return [f"{shown(block.label)}: {shown(block.text)}"]
    if isinstance(block, Facts):
        width = max((len(label) for label, _ in block.pairs), default=0) + 1
        return [f"{label + ':':<{width}}  {shown(text)}" for label, text in block.pairs]
    # An empty cell is a dash, so that columns can be counted.
    lines = [block.columns, *(tuple(shown(cell) or "-" for cell in row.cells) for row in block.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(block.columns))]
    return [
        "  ".join(
            f"{cell:>{width}}" if column in block.right else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _rich(block: Block, console: Console) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    if isinstance(block, Verbatim):
        return Text("\n".join(_plain_lines(block)))
    if isinstance(block, Notice):
        grid = Grid.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(f"{shown(block.label)}:", _STYLES[block.tone] or "bold"), Text(shown(block.text)))
        return grid
    if isinstance(block, Facts):
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in block.pairs:
            grid.add_row(Text(label, "bold"), Text(shown(text)))
        return grid
    return _rich_table(block, console.width)


def _rich_table(block: Table, width: int) -> RenderableType:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    narrow = _is_narrow(block, width)
    columns = block.columns[:-1] if narrow else block.columns
    below = narrow and block.prose == "below"
    wraps = _giving_way(block, width)
    room = width - sum(_column_width(block, index) + 2 for index in range(len(columns)) if index != wraps)
    grid = Grid(title=block.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    grid.padding = (0, 1, 0, 0)
    for index, heading in enumerate(columns):
        justify: Literal["left", "right"] = "right" if index in block.right else "left"
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=index != wraps)
    for row in block.rows:
        cells = [Text(shown(cell)) for cell in row.cells[: len(columns)]]
        cells[wraps] = Text(_broken(cells[wraps].plain, room))
        cells[0].stylize(_STYLES[row.tone])
        if below:
            cells[0].append(f"\n{shown(row.cells[-1])}", "dim")
        grid.add_row(*cells)
    return grid


def _is_narrow(block: Table, width: int) -> bool:
    return width < _WIDE_COLUMNS and block.prose != "none"


def _giving_way(block: Table, width: int) -> int:
    """The column that wraps: the last where it holds sentences beside the others."""
    return block.wraps if _is_narrow(block, width) or block.prose == "none" else len(block.columns) - 1


def _parts(block: Block, width: int) -> list[Block]:
    """`block` itself, or a table too wide for `width` as several, so that no column loses what it says.

    rich takes from every column alike, and drops some wholly: a row would stand there without its name.
    """
    if not isinstance(block, Table):
        return [block]
    sentences = 1 if _is_narrow(block, width) else 0
    columns = range(len(block.columns) - sentences)
    if len(columns) < 3 or _width_of(block, columns, _giving_way(block, width)) <= width:
        return [block]
    groups: list[list[int]] = [[0]]
    for index in columns[1:]:
        if len(groups[-1]) > 1 and _width_of(block, [*groups[-1], index], block.wraps or None) > width:
            groups.append([0])
        groups[-1].append(index)
    groups[0] += [len(block.columns) - 1] * sentences
    return [_part(block, group, first=group is groups[0]) for group in groups]


def _part(block: Table, columns: Sequence[int], *, first: bool) -> Table:
    return Table(
        block.title if first else "",
        tuple(block.columns[index] for index in columns),
        tuple(Row(tuple(row.cells[index] for index in columns), row.tone) for row in block.rows),
        frozenset(place for place, index in enumerate(columns) if index in block.right),
        columns.index(block.wraps) if block.wraps in columns else 0,
        block.prose if first else "none",
    )


def _width_of(block: Table, columns: Sequence[int], wraps: int | None) -> int:
    """Of these columns beside each other, the one that gives way at its narrowest."""
    wide = {index: _column_width(block, index) for index in columns}
    if wraps in wide:
        wide[wraps] = min(wide[wraps], _NARROWEST)
    return sum(wide.values()) + 2 * len(columns)


def _column_width(block: Table, index: int) -> int:
    return max(len(block.columns[index]), *(len(shown(row.cells[index])) for row in block.rows), 0)


def _broken(name: str, room: int) -> str:
    """A dotted name that is too long for `room`, broken after a dot where that helps; any other text as it is."""
    at = name.rfind(".", 0, room) + 1
    return name if len(name) <= room or " " in name or not at else f"{name[:at]}\n{_broken(name[at:], room)}"
