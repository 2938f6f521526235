"""What the tests of the engine room share: the converter's Python, tiny graphs, and a converter that misbehaves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.environment import converter_python as find_converter_python
from tests.programs import write_program


@pytest.fixture(scope="session")
def converter_python() -> Path:
    """The Python of the real converter environment, made where it is missing."""
    return find_converter_python()


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of the test's own, so that whatever a build leaves behind is seen."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert [path.name for path in folder.iterdir()] == [], "a working directory was left behind"


@pytest.fixture
def fake_converter(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a converter's Python that runs the given Python lines instead of the worker.

    They find `folder`, the private working directory, and `report(**values)`, which writes the worker's result.
    """

    def make(lines: str) -> Path:
        return write_program(tmp_path / "converter", f"{_PRELUDE}\n{textwrap.dedent(lines)}", "-IS")

    return make


_PRELUDE = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
folder = Path.cwd()
def report(**values):
    (folder / "result.json").write_text(json.dumps(values))
"""
