"""Reads JSON files that others wrote: their size first, then each key with what it has to be.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rknn_tts_runtime.faults import BadInput

LARGEST_BYTES = 16 << 20
"""Of a manifest or plan that is read: the largest manifest known (134 states, their shapes and verdicts) has 0.1 MB."""

LARGEST_NUMBER = 1 << 32
"""Of a size that is believed, where nothing else bounds it: the NPU's address space is of 32 bits."""

LONGEST_NAME_BYTES = 255
"""Of a file's name: NAME_MAX of Linux."""

MOST_DIGITS = 20
"""Of a whole number that is read: 64 bits have 20. Python before 3.11 takes hours to read one of millions of digits."""

_SHOWN_CHARS = 80


def read_json(path: Path, what: str) -> object:
    """The JSON data in the file `path`, which is to be `what` ("a plan").

    Raises:
        BadInput: it cannot be read, is larger than any of ours, or is no JSON.
    """
    noun = what.split()[-1]
    try:
        if not path.is_file():
            raise BadInput(f"{path}: there is no such file, or it is none; expected {what}.")
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as {what} ({error.strerror}).") from error
    if len(text) > LARGEST_BYTES:
        raise BadInput(f"{path}: has more than {LARGEST_BYTES} bytes, too many for {what}.")
    try:
        return parsed_json(text)
    except RecursionError as error:
        raise BadInput(f"{path}: is nested too deep to be {what}.") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON, so no {noun} ({error!s:.{_SHOWN_CHARS}}).") from error


def parsed_json(text: bytes) -> object:
    """The JSON data in `text`.

    Raises:
        ValueError: it is no JSON, or a number in it is no finite one or of more than `MOST_DIGITS` digits.
        RecursionError: it is nested too deep.
    """
    return json.loads(text.decode("utf-8"), parse_int=bounded_whole, parse_constant=_refused_constant)


def bounded_whole(digits: str) -> int:
    """The whole number of `digits`, for `json`.

    Raises:
        ValueError: it has more than `MOST_DIGITS` digits.
    """
    if len(digits) > MOST_DIGITS + len("-"):
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _refused_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


class KeyReader:
    """Reads keys of an object, each by its dotted name, and refuses what is not of its kind with `BadInput`."""

    def __init__(self, path: Path, data: dict[str, Any], remedy: str) -> None:
        """Read `data`, of the file `path`; `remedy` ends every message."""
        self.path = path
        self.data = data
        self._remedy = remedy

    def found(self, key: str) -> Any:
        """What stands under `key`; None where nothing does."""
        value: Any = self.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def text(self, key: str) -> str:
        """A text that is not empty and can be printed."""
        return self.as_text(key, self.found(key))

    def optional_text(self, key: str) -> str | None:
        """The same, or None where there is none."""
        value = self.found(key)
        return None if value is None else self.as_text(key, value)

    def whole(self, key: str, least: int, most: int = LARGEST_NUMBER) -> int:
        """A whole number within bounds."""
        return self.as_whole(key, self.found(key), least, most)

    def optional_whole(self, key: str, least: int, most: int = LARGEST_NUMBER) -> int | None:
        """The same, or None where there is none."""
        value = self.found(key)
        return None if value is None else self.as_whole(key, value, least, most)

    def number(self, key: str) -> float:
        """A finite number from 0."""
        value = self.found(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self.wrong(key, value, "a number from 0")
        return float(value)

    def table(self, key: str) -> dict[str, Any]:
        """An object; empty where there is none."""
        value = self.found(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, value, "an object")
        return value or {}

    def items(self, key: str) -> list[tuple[str, Any]]:
        """The entries of a list, each with the name that messages have for it."""
        value = self.found(key)
        if not isinstance(value, list):
            raise self.wrong(key, value, "a list")
        return [(f"{key}[{place}]", item) for place, item in enumerate(value)]

    def as_text(self, key: str, value: object) -> str:
        """`value`, which stands under `key`, as a text that is not empty and can be printed."""
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self.wrong(key, value, "a text that can be printed")
        return value

    def as_file(self, key: str, value: object) -> Path:
        """The file beside this one that `value`, which stands under `key`, names."""
        name = self.as_text(key, value)
        if "/" in name or "\\" in name or name in (".", "..") or len(name.encode()) > LONGEST_NAME_BYTES:
            raise self.wrong(key, name, "the name of a file beside it")
        return self.path.parent / name

    def as_whole(self, key: str, value: object, least: int, most: int = LARGEST_NUMBER) -> int:
        """`value`, which stands under `key`, as a whole number within bounds; 109.0 is none."""
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, value, f"a whole number from {least} to {most}")
        return value

    def wrong(self, key: str, value: object, expected: str) -> BadInput:
        """That `key` is `value`, and not what was `expected`."""
        shown = key if key.isprintable() else repr(key)
        return BadInput(f"{self.path}: {shown} is {value!r:.{_SHOWN_CHARS}}, expected {expected}; {self._remedy}.")
