"""What a page is made of, before it is HTML: sections of tables, figures and sound."""

from __future__ import annotations

from dataclasses import dataclass

from rknn_tts.blocks import Block, Table
from rknn_tts.engine_page.figures import Drawing


@dataclass(frozen=True)
class Player:
    """A sound to hear.

    Attributes:
        label: what it is.
        uri: its data.
    """

    label: str
    uri: str


@dataclass(frozen=True)
class Meter:
    """How much of something is taken.

    Attributes:
        label: what of what, in words with figures.
        share: the part that is taken, 0 to 1; more than that is all.
    """

    label: str
    share: float


@dataclass(frozen=True)
class Players:
    """Sounds to compare, in a row."""

    players: tuple[Player, ...]


@dataclass(frozen=True)
class Folded:
    """Elements that are long and seldom looked at: behind a line that opens them."""

    label: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Linked:
    """A table whose rows lead on.

    Attributes:
        table: the table.
        anchors: for each row, the part of the page that its first cell leads to; "" where there is none.
    """

    table: Table
    anchors: tuple[str, ...]


Element = Block | Drawing | Players | Meter | Folded | Linked


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes:
        anchor: its name within the engine's part: letters and dashes.
        title: its heading.
        elements: what stands in it, in order.
    """

    anchor: str
    title: str
    elements: tuple[Element, ...]


@dataclass(frozen=True)
class Badge:
    """A count of verdicts: `38 passed`; its tone is that of a row."""

    text: str
    tone: str


@dataclass(frozen=True)
class EnginePart:
    """An engine's part of a page.

    Attributes:
        anchor: its name on the page.
        name: its heading.
        what: what it is, in a few words.
        badges: its verdicts, counted.
        sections: its sections.
    """

    anchor: str
    name: str
    what: str
    badges: tuple[Badge, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: its heading.
        intro: a sentence below it.
        comparison: sections before the engines' parts; none of one engine.
        parts: the engines' parts.
    """

    title: str
    intro: str
    comparison: tuple[Section, ...]
    parts: tuple[EnginePart, ...]
