"""From the bytes a build wrote on file descriptors 1 and 2 to clean lines.

The toolkit prints natively and from Python into one stream, in colour. tqdm redraws its bars with a carriage return
and leaves the last one without a line end, so that the next record is glued to it (measured, 2.3.2: the one line that
tells of random weights stands behind `I Loading :   0%| | 0/1 [00:00<?, ?it/s]`). Here every record and every redraw is
a line of its own; a line without end costs bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 64 * 1024
"""A longer line is cut into pieces of this size. Real lines: 16 KB at most (measured, 2.3.2, Piper)."""

CUT_MARK = "... "
"""Starts every further piece of a line that was cut, so that no piece can pass for a record of its own."""

_LINE_END = re.compile(rb"[\r\n]")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_COLOURED_RECORD = re.compile(r"(?=\x1b\[[\d;]*m[EWIDF]\x1b\[0?m )")
_NATIVE_MARK = " RKNN: ["
_NATIVE_RECORD = re.compile(r"(?=[EWIDF] RKNN: \[\d)")
_BAR = re.compile(r"(?:I )?(?P<stage>\w[\w ]*?) *: +\d+%\|[^|]*\| *(?P<done>\d+)/(?P<total>\d+) \[[^\]]*\]")


@dataclass(frozen=True)
class Progress:
    """One redraw of a progress bar: its name ("Loading", "OpFusing 0"), and items done of a total."""

    stage: str
    done: int
    total: int


class LineSplitter:
    """Cuts a stream of bytes into clean lines as it arrives."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._rest = b""
        self._cut = False

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that `chunk` completes, in order; empty lines are left out."""
        *whole, self._rest = _LINE_END.split(self._rest + chunk)
        lines = [line for raw in whole for line in self._line(raw)]
        while len(self._rest) > self._max_line_bytes:
            piece, self._rest = self._rest[: self._max_line_bytes], self._rest[self._max_line_bytes :]
            lines += self._piece(piece)
            self._cut = True
        return lines

    def close(self) -> list[str]:
        """The lines of what is left at the end of the stream."""
        raw, self._rest = self._rest, b""
        return self._line(raw)

    def _line(self, raw: bytes) -> list[str]:
        size = self._max_line_bytes
        lines: list[str] = []
        for start in range(0, max(len(raw), 1), size):
            lines += self._piece(raw[start : start + size])
            self._cut = True
        self._cut = False
        return lines

    def _piece(self, raw: bytes) -> list[str]:
        mark = CUT_MARK if self._cut and raw else ""
        return _records(mark + raw.decode("utf-8", errors="replace"))


def clean_lines(log: bytes | str) -> Iterator[str]:
    """The clean lines of a whole log, as `LineSplitter` would give them."""
    splitter = LineSplitter()
    data = log if isinstance(log, bytes) else log.encode("utf-8", errors="replace")
    for start in range(0, len(data), MAX_LINE_BYTES):
        yield from splitter.feed(data[start : start + MAX_LINE_BYTES])
    yield from splitter.close()


def parse_progress(line: str) -> Progress | None:
    """The progress that a clean line shows; None where it is no progress bar."""
    match = _BAR.fullmatch(line)
    return Progress(match["stage"], int(match["done"]), int(match["total"])) if match else None


def _records(text: str) -> list[str]:
    """One physical line as clean records: glued ones apart, colour and trailing blanks gone, empty ones left out."""
    parts = [text]
    if "\x1b" in text:
        parts = [_ESCAPE.sub("", part) for part in _COLOURED_RECORD.split(text)]
    lines = [
        line.replace("\x00", "").rstrip()
        for part in parts
        for record in (_NATIVE_RECORD.split(part) if part.find(_NATIVE_MARK, 2) > 0 else [part])
        for line in _after_bars(record)
    ]
    return [line for line in lines if line]


def _after_bars(record: str) -> Iterator[str]:
    """The bars at the start of `record`, each apart, then what is glued to the last."""
    while "%|" in record and (bar := _BAR.match(record)):
        yield bar.group()
        record = record[bar.end() :]
    yield record
