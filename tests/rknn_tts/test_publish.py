from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.errors import NotWritten, ToolFailure
from rknn_tts.publish import each_once, publish

LONG_AGO_NS = 1_000_000_000


def test_publish_lets_the_files_appear_in_the_order_given_once_all_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def told_fsync(handle: int) -> None:
        did.append("sync")
        fsync(handle)

    def told_replace(self: Path, path: Path) -> Path:
        did.append(path.name)
        return replace(self, path)

    monkeypatch.setattr(os, "fsync", told_fsync)
    monkeypatch.setattr(Path, "replace", told_replace)
    publish([(tmp_path / name, b"x") for name in ("a.rknn", "a.onnx", "a.json")])
    assert did == ["sync", "sync", "sync", "a.rknn", "a.onnx", "a.json", "sync"]


def test_publish_replaces_what_differs_and_leaves_what_does_not(tmp_path: Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    for path in (same, other):
        path.write_bytes(b"content")
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    publish([(same, b"content"), (other, b"Content"), (tmp_path / "new", b"")])
    assert same.stat().st_mtime_ns == LONG_AGO_NS
    assert other.read_bytes() == b"Content"
    assert (tmp_path / "new").read_bytes() == b""
    assert {path.name for path in tmp_path.iterdir()} == {"same", "other", "new"}


def test_publish_leaves_everything_as_it_was_when_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").mkdir()
    for name in ("a.rknn", "a.json"):
        (tmp_path / name).write_bytes(b"older")
    files = [(tmp_path / name, b"newer") for name in ("a.rknn", "a.onnx", "a.json")]
    with pytest.raises(NotWritten, match=r"a\.onnx: cannot be written .*--output names another place") as caught:
        publish(files)
    assert caught.value.exit_code == 1
    assert [(tmp_path / name).read_bytes() for name in ("a.rknn", "a.json")] == [b"older", b"older"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.rknn", "a.onnx", "a.json"}


def test_publish_names_the_file_when_its_folder_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match=r"gone/a\.rknn: cannot be written"):
        publish([(tmp_path / "gone" / "a.rknn", b"engine")])


A, B = Path("a"), Path("b")


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ([], []),
        ([(A, b"1"), (B, b"2")], [(A, b"1"), (B, b"2")]),
        ([(B, b"2"), (A, b"1"), (B, b"2")], [(B, b"2"), (A, b"1")]),
    ],
)
def test_each_once_keeps_the_first_of_files_that_are_the_same(
    files: list[tuple[Path, bytes]], wanted: list[tuple[Path, bytes]]
) -> None:
    assert each_once(files) == wanted


def test_each_once_refuses_unlike_files_in_one_place() -> None:
    with pytest.raises(ToolFailure, match=r"^b: the engines of this set were made with unlike ones"):
        each_once([(A, b"1"), (B, b"2"), (B, b"3")])
