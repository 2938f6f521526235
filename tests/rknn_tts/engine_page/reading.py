"""Reads a page as a browser would: its elements, tables and texts."""

from __future__ import annotations

import base64
import io
import wave
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
from numpy.typing import NDArray

VOID = frozenset({"meta", "br", "img", "input", "link", "hr"})


@dataclass
class Reading(HTMLParser):
    """What stands in a page.

    Attributes:
        tags: every element's name and attributes, in order.
        text: all texts, one behind the other.
        tables: caption to rows; each row its cells' texts.
        facts: label to text.
        notices: whole texts of notices.
        lines: texts of `pre` elements.
    """

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag == "dt":
            self._label = ""
        elif tag == "pre":
            self.lines.append("")
        elif tag == "p" and found.get("class", "").startswith("notice"):
            self.notices.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data
        inside = set(self._open)
        if "caption" in inside:
            self.tables[data.strip()] = self._rows
        elif inside & {"td", "th"}:
            self._rows[-1][-1] += data
        elif "dt" in inside:
            self._label += data
        elif "dd" in inside:
            self.facts[self._label] = self.facts.get(self._label, "") + data
        elif "pre" in inside:
            self.lines[-1] += data
        elif self._open[-1:] in (["p"], ["strong"]) and self.notices and "p" in inside and data.strip():
            self.notices[-1] += data

    def attributes(self, tag: str, name: str) -> list[str]:
        """The attribute `name` of every element `tag` that has it."""
        return [attrs[name] for found, attrs in self.tags if found == tag and name in attrs]


def read_page(data: bytes) -> Reading:
    """The page in `data`."""
    reading = Reading()
    reading.feed(data.decode("utf-8"))
    reading.close()
    return reading


def samples_of(uri: str) -> tuple[int, NDArray[np.float64]]:
    """Sample rate and samples in -1..1 of a WAV in a data URI."""
    kind, _, data = uri.partition(",")
    assert kind == "data:audio/wav;base64"
    with wave.open(io.BytesIO(base64.b64decode(data))) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32767
