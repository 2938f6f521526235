"""Where files may be written, and that what stands there is not lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.whole_file import check_place, write_whole


def test_place_is_free_or_has_a_file(tmp_path: Path) -> None:
    assert not check_place(tmp_path / "new")
    (tmp_path / "old").touch()
    assert check_place(tmp_path / "old")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    assert check_place(tmp_path / "link")


def test_place_is_refused_where_a_pipe_or_a_device_stands(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(BadInput, match=f"--out {path}: is no file but a device or a pipe, and would be replaced"):
            check_place(path)


def test_place_is_refused_where_its_folder_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(BadInput, match="its folder cannot be written"):
        check_place(tmp_path / "new")


def test_place_is_refused_where_no_file_can_stand(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder; name a file"):
        check_place(tmp_path)
    with pytest.raises(BadInput, match=f"there is no folder {tmp_path / 'gone'}; name a file"):
        check_place(tmp_path / "gone" / "a")
    for path in (tmp_path / ("a" * 256), tmp_path / ("a" * 256) / "b"):
        with pytest.raises(BadInput, match=r"cannot be looked at \(File name too long\)"):
            check_place(path)


def test_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)  # 254 bytes of the 255 that a name can have
    for data in (b"first", b"second"):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]
