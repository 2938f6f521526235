"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from engine.folders import clock_s, new_folder, remove_folder


@pytest.mark.parametrize("earlier", [None, "old"])
def test_folder_holds_the_new_files_when_the_body_ends(tmp_path: Path, earlier: str | None) -> None:
    final = tmp_path / "deep" / "final"
    if earlier:
        final.mkdir(parents=True)
        (final / earlier).touch()
    with new_folder(final) as partial:
        (partial / "sub").mkdir()
        (partial / "sub" / "a").write_text("A")
        assert not (final / "sub").exists()
    assert [path.relative_to(final).as_posix() for path in sorted(final.rglob("*"))] == ["sub", "sub/a"]
    assert list(final.parent.iterdir()) == [final]
    assert final.stat().st_mode & 0o055 == 0o055


def test_folder_is_as_before_when_the_body_raises(tmp_path: Path) -> None:
    final = tmp_path / "final"
    final.mkdir()
    (final / "old").touch()
    with pytest.raises(KeyboardInterrupt), new_folder(final) as partial:  # noqa: PT012
        (partial / "a").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.rglob("*")) == [final, final / "old"]


def test_folder_goes_whole_and_one_that_is_gone_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").touch()
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: removed.append(path))
    remove_folder(folder)
    remove_folder(folder)
    assert list(tmp_path.iterdir()) == removed  # it has lost its name before anything of it goes
    assert removed[0].name.startswith(".partial-folder-")
    assert (removed[0] / "a").exists()


def test_clock_is_that_of_the_disk_and_asking_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.NamedTemporaryFile() as before:
        earliest = Path(before.name).stat().st_mtime
    monkeypatch.setattr("time.time", lambda: 0.0)
    told = clock_s(tmp_path)
    (tmp_path / "after").touch()
    assert earliest <= told <= (tmp_path / "after").stat().st_mtime
    assert [path.name for path in tmp_path.iterdir()] == ["after"]


@pytest.mark.parametrize(
    ("number", "of_folder", "refused"),
    [(errno.EINVAL, True, False), (errno.EINVAL, False, True), (errno.EIO, True, True), (errno.EDQUOT, False, True)],
)
def test_folder_is_not_kept_when_a_file_of_it_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, of_folder: bool, refused: bool
) -> None:
    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is of_folder:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", sync)
    expected = pytest.raises(OSError, match=os.strerror(number)) if refused else nullcontext()
    with expected, new_folder(tmp_path / "final") as partial:
        (partial / "a").touch()
    assert [path.name for path in tmp_path.iterdir()] == ([] if refused else ["final"])
