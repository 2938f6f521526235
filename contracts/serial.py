"""The one writer and reader of this project's dataclasses as JSON.

JSON has no non-finite numbers: they are written as the strings "nan", "inf" and "-inf" (design, Gates) and read back as
numbers wherever a number is allowed. Unknown keys are ignored, so that a newer manifest can be read; a missing or
mistyped one is an error that names it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

T = TypeVar("T")

DEEPEST = 100
"""Levels of lists and objects that are read: the deepest file of ours, a manifest, has seven."""


LARGEST = 2**63 - 1
"""Of whole numbers: as large as ONNX's own. Far larger ones are no floats, and no size or count of anything."""


class TooDeep(ValueError):
    """JSON data is nested deeper than any file of ours."""


_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def parse_json(text: str) -> object:
    """The data in `text`, at most `DEEPEST` levels of lists and objects.

    Raises:
        TooDeep: there are more levels. How many Python itself can read differs between its versions.
        ValueError: the text is not JSON.
    """
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise TooDeep(f"more than {DEEPEST} levels") from error
    level = [data]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _items(value)]
        if not level:
            return data
    raise TooDeep(f"more than {DEEPEST} levels")


def to_json(value: object) -> Json:
    """`value` (a dataclass, Enum, mapping, sequence or scalar) as JSON data.

    Raises:
        TypeError: something in `value` has no JSON form.
    """
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: type[T], data: object, where: str = "") -> T:
    """The dataclass `kind` that `to_json` wrote as `data`.

    Raises:
        ValueError: a key is missing or a value has the wrong type; the message names its path.
    """
    return typing.cast(T, _read(kind, data, where or kind.__name__))


_AS_THEY_ARE = (str, float, bool)
"""Types whose values are taken without a further look: most of a manifest, and a farm's catalogue reads thousands."""


def _read(kind: Any, data: object, where: str) -> object:
    if kind is type(data) and kind in _AS_THEY_ARE:
        return data
    if _is_json(kind):
        return data
    origin, arguments = _parts(kind)
    if origin in (types.UnionType, typing.Union):
        return _read_union(arguments, data, where)
    if origin is tuple and isinstance(data, list):
        return tuple(_read(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    if origin is dict and isinstance(data, dict):
        return {str(key): _read(arguments[1], item, f"{where}.{key}") for key, item in data.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(data, dict):
        return _read_dataclass(kind, data, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise ValueError(f"{where}: {data!r:.60} is none of {', '.join(str(m.value) for m in kind)}") from None
    if kind is float:
        if isinstance(data, str) and data in _NON_FINITE:
            return _NON_FINITE[data]
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            try:
                return float(data)
            except OverflowError:
                raise ValueError(f"{where}: {data!r:.60}... is too large for a number") from None
    elif kind is int and isinstance(data, bool):
        pass
    elif kind is int and isinstance(data, int) and abs(data) > LARGEST:
        raise ValueError(f"{where}: {data!r:.60}... is too large for a number")
    elif kind in (int, str, bool) and isinstance(data, kind):
        return data
    raise ValueError(f"{where}: {_name(kind)} was expected, not {data!r:.60}")


def _read_union(kinds: tuple[Any, ...], data: object, where: str) -> object:
    if data is None and type(None) in kinds:
        return None
    first_error: ValueError | None = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return _read(kind, data, where)
        except ValueError as error:
            first_error = first_error or error
    raise first_error or ValueError(f"{where}: null was expected, not {data!r:.60}")


def _read_dataclass(kind: type, data: dict[str, object], where: str) -> object:
    hints = _hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = _read(hints[field.name], data[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where}: the key {field.name!r} is missing")
    return kind(**values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of its fields; found out once, as that takes most of the time of reading thousands of manifests."""
    return typing.get_type_hints(kind)


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """What `kind` is a form of (None of a plain type), and of what: `tuple[int, ...]` is one of tuple, of int."""
    return typing.get_origin(kind), typing.get_args(kind)


@cache
def _is_json(kind: Any) -> bool:
    """Whether `kind` is `Json`, whose recursive alias `get_type_hints` unfolds by one step on Python 3.11 and newer."""
    kinds = {typing.get_origin(item) or item for item in typing.get_args(kind)}
    return kinds == {types.NoneType, bool, int, float, str, list, dict}


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))
