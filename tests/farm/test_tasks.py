from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.tasks import Task, find_task, read_tasks, write_tasks
from tests.farm.stub_farms import job

TASKS = [
    Task(replace(job(f"Ærø {number}" * (number % 7 + 1)), voice="é" * (number % 50)), number, 2, 3, number % 3 == 0)
    for number in range(500)
]
"""Lines of many lengths."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_tasks(TASKS, tmp_path / "tasks.txt")
    return tmp_path / "tasks.txt"


def test_tasks_are_read_as_they_were_written(path: Path) -> None:
    assert read_tasks(path) == {task.job.id: task for task in TASKS}


def test_every_task_is_found_by_its_job(path: Path) -> None:
    for task in TASKS:
        assert find_task(task.job.id, path) == task


@pytest.mark.parametrize("identifier", ["a", "export-7fffffffffffffff", "zzz", "", "export"])
def test_job_is_refused_when_it_is_none_of_the_tasks(identifier: str, path: Path) -> None:
    with pytest.raises(UserInput, match=f"tasks.txt: has no job {identifier}; run `rknn-tts farm MATRIX.toml` again"):
        find_task(identifier, path)


def test_the_only_task_is_found(tmp_path: Path) -> None:
    write_tasks(TASKS[:1], tmp_path / "tasks.txt")
    assert find_task(TASKS[0].job.id, tmp_path / "tasks.txt") == TASKS[0]


def test_few_lines_are_read_when_one_of_many_is_sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tasks.txt"
    write_tasks([replace(TASKS[0], job=replace(TASKS[0].job, id=f"page-{n:016x}")) for n in range(5_000)], path)
    monkeypatch.setattr(Path, "open", counting(path))
    assert find_task(f"page-{1_234:016x}", path).job.id == f"page-{1_234:016x}"
    assert Counting.read_bytes < path.stat().st_size / 20


class Counting:
    """A file that counts what is read of it."""

    read_bytes = 0

    def __init__(self, file: object) -> None:
        self._file = file

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        def call(*arguments: int) -> object:
            result = getattr(self._file, name)(*arguments)
            Counting.read_bytes += len(result) if isinstance(result, bytes) else 0
            return result

        return call


def counting(path: Path) -> object:
    """`Path.open` of the file `path` alone, with what is read counted."""
    file = path.open("rb")
    return lambda *_: Counting(file)


@pytest.mark.parametrize("content", [b"export-0123456789abcdef {\n", b"export-0123456789abcdef\n"])
def test_tasks_are_refused_when_the_file_is_damaged(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tasks.txt"
    path.write_bytes(content)
    for read in (lambda: read_tasks(path), lambda: find_task("export-0123456789abcdef", path)):
        with pytest.raises(UserInput, match=r"tasks.txt: is damaged"):
            read()


def test_tasks_are_refused_when_there_is_no_file(tmp_path: Path) -> None:
    for read in (lambda: read_tasks(tmp_path / "x"), lambda: find_task("export-0", tmp_path / "x")):
        with pytest.raises(UserInput, match=r"x: cannot be read \(No such file or directory\)"):
            read()
