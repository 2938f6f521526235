"""What a catalogue's page is made of, and how its figures are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

UNKNOWN = "-"

FROM_THIRD, FROM_FOURTH = "from-third", "from-fourth"
"""Classes of the style sheet (pages/style.css): tables whose columns hold numbers from there on."""

MOST_LISTED = 200
"""Rows of a list that may have a row for each of thousands of engines; catalogue.json has all of them."""

BYTES_PER_MB, BYTES_PER_GB, KB_PER_MB, BYTES_PER_MIB = 1e6, 1e9, 1e3, 1 << 20
_SECONDS_PER_HOUR, _SECONDS_PER_MINUTE = 3600, 60
_DIGITS = 4
_PLAIN_TO = 10**_DIGITS


@dataclass(frozen=True)
class Badge:
    """A count with a tone: "good", "warn", "bad" or "plain"."""

    text: str
    tone: str


@dataclass(frozen=True)
class Notice:
    """A sentence under a label."""

    label: str
    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells, the tone of the first, and where cells lead to, by their index."""

    cells: tuple[str, ...]
    tone: str = ""
    links: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table; `kind` is its class in the style sheet: from which column on it holds numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    kind: str = ""


@dataclass(frozen=True)
class Part:
    """A table of a section, behind a line that opens it where `folded`; `rest` says how many rows are left out."""

    table: Table
    folded: bool = False
    rest: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading."""

    anchor: str
    title: str
    notices: tuple[Notice, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Voice:
    """The engines of a voice: its name, what is said beside it, badges where something is not proven, the table."""

    name: str
    what: str
    badges: tuple[Badge, ...]
    table: Table


@dataclass(frozen=True)
class Stage:
    """The voices of a stage."""

    anchor: str
    title: str
    voices: tuple[Voice, ...]


def listed(
    caption: str, columns: tuple[str, ...], rows: Sequence[Row], kind: str = "", *, folded: bool = False
) -> Part:
    """A table of the first `MOST_LISTED` rows."""
    left = len(rows) - MOST_LISTED
    rest = f"{left} more are in catalogue.json." if left > 0 else ""
    return Part(Table(caption, columns, tuple(rows[:MOST_LISTED]), kind), folded, rest)


def figure(value: float | None) -> str:
    """`value` in four significant digits; a dash where it is not known."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if abs(value) >= _PLAIN_TO:
        return f"{value:.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:.{_DIGITS}g}"


def megabytes(size_bytes: float | None) -> str:
    """A size in MB, from a GB on in GB."""
    if size_bytes is None:
        return UNKNOWN
    if size_bytes >= BYTES_PER_GB:
        return f"{size_bytes / BYTES_PER_GB:.1f} GB"
    return f"{size_bytes / BYTES_PER_MB:.1f} MB" if size_bytes >= BYTES_PER_MB / 10 else f"{size_bytes / 1e3:.1f} KB"


def duration(seconds: float | None) -> str:
    """A time in seconds, minutes or hours."""
    if seconds is None:
        return UNKNOWN
    if seconds >= _SECONDS_PER_HOUR:
        return f"{seconds / _SECONDS_PER_HOUR:.1f} h"
    return f"{seconds / _SECONDS_PER_MINUTE:.1f} min" if seconds >= 100 else f"{seconds:.1f} s"


def counted(count: int, what: str) -> str:
    """`1 engine`, `3 engines`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def href(path: str) -> str:
    """A link to the file `path`, relative to the page; it can be nothing else, whatever the name holds."""
    return f"./{quote(path, errors='surrogatepass')}"
