"""Holds docs/architecture.md and the imports of the code together."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, table_rows

ROOMS = {room: row for room, row in table_rows(ROOT / "docs" / "architecture.md").items() if len(row) == 3}
RUNTIME_PACKAGE = "rknn_tts_runtime"
CHECKED = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """The top-level modules that the file imports anywhere, the standard library's left out."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names.add((node.module or "").split(".")[0])
    return names - set(sys.stdlib_module_names)


def imports_of_room(room: str) -> set[str]:
    """What the room imports, itself left out, the runtime's package by the name of its folder."""
    found = set().union(*(imported(path) for path in (ROOT / room).rglob("*.py")))
    return {"runtime" if name == RUNTIME_PACKAGE else name for name in found} - {room}


def cell(text: str) -> set[str]:
    """The names in a cell of the table."""
    return {name.strip() for name in text.split(",")} - {"-"}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_the_page_says(room: str) -> None:
    _, ours, others = ROOMS[room]
    assert imports_of_room(room) - cell(ours) - cell(others) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_page_lists_no_import_that_a_room_does_without(room: str) -> None:
    _, ours, others = ROOMS[room]
    assert (cell(ours) | cell(others)) - imports_of_room(room) == set()


def test_page_has_every_room() -> None:
    folders = {path.parent.name for path in ROOT.glob("[a-z]*/__init__.py")} | {"runtime"}
    assert set(ROOMS) == folders - {"tests", "docs"}


def test_only_the_worker_imports_rknn() -> None:
    assert [path.relative_to(ROOT).as_posix() for path in CHECKED if "rknn" in imported(path)] == ["engine/worker.py"]


def test_torch_is_imported_by_models_and_converters_alone() -> None:
    importing = {path.relative_to(ROOT).parts[0] for path in CHECKED if imported(path) & {"torch", "torchaudio"}}
    assert importing == {"models", "converters"}


def test_torch_is_not_loaded_until_a_checkpoint_is_opened() -> None:
    code = "import sys, converters.registry, rknn_tts.pipeline; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False\n"


def test_worker_imports_nothing_of_the_project() -> None:
    assert imported(ROOT / "engine" / "worker.py") & {*ROOMS, RUNTIME_PACKAGE} == set()


@pytest.mark.parametrize("room", ["surgery", "gates"])
def test_surgery_and_gates_name_no_family(room: str) -> None:
    families = {path.parent.name for path in ROOT.glob("converters/*/__init__.py")}
    strings = [
        node.value
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert families
    assert [text for text in strings if text in families] == []
