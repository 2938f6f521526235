from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.errors import UserInput
from rknn_tts import publish as module
from rknn_tts.publish import publish

LONG_AGO_NS = 1_000_000_000


def test_publish_writes_in_the_order_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(module, "write_whole", lambda path, data: written.append(path.name))
    publish([(tmp_path / name, b"x") for name in ("a.rknn", "a.onnx", "a.json")])
    assert written == ["a.rknn", "a.onnx", "a.json"]


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


def test_publish_names_the_file_that_cannot_be_written_and_leaves_the_later_ones(tmp_path: Path) -> None:
    manifest = tmp_path / "a.json"
    manifest.write_bytes(b"older")
    (tmp_path / "a.onnx").mkdir()
    files = [(tmp_path / "a.rknn", b"engine"), (tmp_path / "a.onnx", b"twin"), (manifest, b"newer")]
    with pytest.raises(UserInput, match=r"a\.onnx: cannot be written .*--output names another place"):
        publish(files)
    assert (tmp_path / "a.rknn").read_bytes() == b"engine"
    assert manifest.read_bytes() == b"older"
    assert {path.name for path in tmp_path.iterdir()} == {"a.rknn", "a.onnx", "a.json"}


def test_publish_names_the_file_when_its_folder_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"gone/a\.rknn: cannot be written"):
        publish([(tmp_path / "gone" / "a.rknn", b"engine")])
