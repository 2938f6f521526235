"""The companion keeps to Python 3.8, which boards ship: its syntax, and what is evaluated when a module runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import rknn_tts_runtime

PACKAGE = Path(rknn_tts_runtime.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

GENERIC_SINCE_3_9 = {"dict", "frozenset", "list", "set", "tuple", "type"}
"""Builtins that could not be subscripted before (PEP 585); in annotations nobody evaluates them."""

LATER = {"removeprefix", "removesuffix", "pairwise", "batched", "cache", "is_relative_to", "hardlink_to", "readlink"}
"""Names of functions and methods that the library has since 3.9 or later."""

LATER_ARGUMENTS = {"slots", "kw_only", "strict"}
"""Keywords of `dataclass` and `zip` since 3.10."""


def faults_in(source: str) -> list[str]:
    """What of `source` Python 3.8 does not know, with its line."""
    return [f"{line}: {what}" for line, what in _faults(ast.parse(source, feature_version=(3, 8)))]


def _faults(node: ast.AST) -> Iterator[tuple[int, str]]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):  # texts, by `from __future__ import annotations`
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _faults(child)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in GENERIC_SINCE_3_9:
        yield node.lineno, f"{node.value.id}[...]"
    if isinstance(node, ast.Attribute) and node.attr in LATER:
        yield node.lineno, node.attr
    if isinstance(node, ast.ImportFrom) and LATER & {alias.name for alias in node.names}:
        yield node.lineno, f"import from {node.module}"
    if isinstance(node, ast.keyword) and node.arg in LATER_ARGUMENTS:
        yield node.value.lineno, f"{node.arg}="


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES])
def test_file_is_of_python_3_8(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert faults_in(source) == []
    assert "from __future__ import annotations" in source or "def " not in source


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("A = dict[str, int]", "1: dict[...]"),
        ("def f(a: dict[str, int]) -> list[int]: return tuple[int](a)", "1: tuple[...]"),
        ("b = 'x'.removeprefix('y')", "1: removeprefix"),
        ("from itertools import pairwise", "1: import from itertools"),
        ("zip(a, b, strict=True)", "1: strict="),
    ],
)
def test_what_3_8_does_not_know_is_found(source: str, fault: str) -> None:
    assert faults_in(source) == [fault]


@pytest.mark.parametrize("source", ["match a:\n    case 1: pass", "with (open(a) as b, open(c) as d): pass"])
def test_syntax_that_3_8_does_not_know_is_found(source: str) -> None:
    with pytest.raises(SyntaxError):
        faults_in(source)
