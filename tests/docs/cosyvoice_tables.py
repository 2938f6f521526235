"""The tables of tensors on CosyVoice's pages, read: shapes by what a tensor is called, with sizes in letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.docs.pages import prose

Shape = tuple[int, ...]

_TABLE = re.compile(r"^\| `([^`|]+)`([^|]*)\| Shape \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_SHAPE = re.compile(r"\[([^\]]+)\]")


def tensor_tables(page: Path) -> dict[str, dict[str, list[str]]]:
    """The tables whose second column is `Shape`, by their first cell: a tensor's name to its shapes, as they stand."""
    found = {}
    for name, more, rows in _TABLE.findall(prose(page)):
        shapes: dict[str, list[str]] = {}
        for row in rows.splitlines():
            first, second = row.split("|")[1:3]
            shapes |= dict.fromkeys(_NAME.findall(first), _SHAPE.findall(second))
        found[f"{name}{more}".strip()] = shapes
    return found


def sized(shape: str, sizes: Mapping[str, int]) -> Shape:
    """`1, 18, 1, 120 W + 1` in numbers."""
    return tuple(sum(_product(term, sizes) for term in axis.split(" + ")) for axis in shape.split(", "))


def _product(text: str, sizes: Mapping[str, int]) -> int:
    product = 1
    for factor in text.split():
        product *= sizes[factor] if factor in sizes else int(factor)
    return product


def compared(
    told: Mapping[str, list[str]], real: Mapping[str, Shape], sizes: Mapping[str, int]
) -> tuple[dict[str, set[Shape]], dict[str, set[Shape]]]:
    """The shapes of a table and those of the code, by the table's names, of which words in capitals stand for any."""
    patterns = {name: re.compile(re.sub(r"[A-Z]+", r"[\\w.]+", re.escape(name))) for name in told}
    found: dict[str, set[Shape]] = {name: set() for name in told}
    for tensor, shape in real.items():
        name = next((name for name, pattern in patterns.items() if pattern.fullmatch(tensor)), tensor)
        found.setdefault(name, set()).add(shape)
    return {name: {sized(shape, sizes) for shape in shapes} for name, shapes in told.items()}, found
