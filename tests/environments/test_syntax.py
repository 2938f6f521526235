"""The set-up must be able to say its sentence under a Python that is too old for everything else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.environments.stubs import REPOSITORY

# What the standard library gained after 3.6, of what one would write here without thinking.
NEWER = {"capture_output", "text", "missing_ok", "dirs_exist_ok", "removeprefix", "removesuffix", "dataclasses"}
FILES = sorted((REPOSITORY / "environments").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_environments_parse_when_python_is_3_6(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module != "__future__", "3.6 has no `from __future__ import annotations`"
        name = _name(node)
        assert name not in NEWER, f"{path.name}:{getattr(node, 'lineno', '?')}: {name} is newer than 3.6"


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.keyword):
        return node.arg
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.name if isinstance(node, ast.alias) else None
