"""Entries of the cache: what is kept of a step's folder, and what is told of what there is."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from engine.cache import StepCache
from engine.cache_entries import drop_damaged, entries_in, is_listed, is_whole, write_entry


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "sub").mkdir(parents=True)
    (folder / "engine.rknn").write_bytes(b"R" * 10)
    (folder / "sub" / "log.txt").write_text("log")
    return folder


def test_entry_is_whole_and_as_large_as_its_files_when_it_was_written(tmp_path: Path, made: Path) -> None:
    entry = tmp_path / "cache" / "2f" / "2f81"
    assert not is_listed(entry)
    assert write_entry(entry, made, given_up=False) == 13
    assert is_listed(entry)
    assert is_whole(entry)
    assert not (entry / "engine.rknn").samefile(made / "engine.rknn")


def test_entry_is_not_whole_when_a_file_of_it_is_another(tmp_path: Path, made: Path) -> None:
    entry = tmp_path / "cache" / "2f" / "2f81"
    write_entry(entry, made, given_up=False)
    (entry / "sub" / "log.txt").write_text("LOG")
    assert not is_whole(entry)
    drop_damaged(entry)
    assert not is_listed(entry)
    assert list(entry.parent.iterdir()) == []


def test_entry_is_not_taken_for_damaged_when_the_disk_cannot_read_it(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(path: Path) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    cache = StepCache(tmp_path / "cache", say=lambda _: None)
    entry = cache.store("2f" * 32, made)
    with monkeypatch.context() as patch:
        patch.setattr("engine.cache_entries.sha256_of", unreadable)
        with pytest.raises(OSError, match="Input/output error"):
            is_whole(entry)
        assert cache.find("2f" * 32) is None
    assert cache.find("2f" * 32) == entry


def test_entry_without_its_contents_is_dropped(tmp_path: Path, made: Path) -> None:
    entry = tmp_path / "cache" / "2f" / "2f81"
    write_entry(entry, made, given_up=True)
    (entry / ".contents.json").unlink()
    with pytest.raises(FileNotFoundError):
        is_whole(entry)
    drop_damaged(entry)
    assert list(entry.parent.iterdir()) == []


def test_entry_is_listed_or_not_in_a_folder_that_can_be_read_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not is_listed(tmp_path / "nowhere" / "2f81")
    with pytest.raises(NotADirectoryError):
        is_listed(tmp_path / "file" / "2f81")


@pytest.mark.parametrize("contents", ["{", "[]", '{"a": 3}', '{"a": []}', '"text"'])
def test_entries_are_told_with_their_size_and_damaged_ones_as_empty_and_old(
    tmp_path: Path, made: Path, contents: str
) -> None:
    whole, damaged = tmp_path / "2f" / "2f81", tmp_path / "a0" / "a0b1"
    write_entry(whole, made, given_up=True)
    write_entry(damaged, made, given_up=True)
    (damaged / ".contents.json").write_text(contents)
    first, second = sorted(entries_in(tmp_path))
    assert (first.path, first.size_bytes, first.used_s) == (damaged, 0, 0.0)
    assert (second.path, second.size_bytes) == (whole, 13)
    assert second.used_s == (whole / ".contents.json").stat().st_mtime
    assert sorted(json.loads((whole / ".contents.json").read_text())) == ["engine.rknn", "sub/log.txt"]
